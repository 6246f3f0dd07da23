# The site, its workers and its commands, for CPUs or for NVIDIA's GPUs: docker build --build-arg DEVICE=cuda .
ARG BASE=python:3.11.16-slim-trixie
FROM ${BASE}

ARG DEVICE=cpu
# The index of torch, if not PyTorch's own for the device; "-" is the default one of pip.
ARG TORCH_INDEX=
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HOME=/var/cache/benchbench/models HOME=/var/cache/benchbench \
    BENCHBENCH_DATA_DIR=/var/cache/benchbench/data TMPDIR=/var/cache/benchbench/tmp
WORKDIR /app

# The packages first: they change seldom, and are most of the image. torch of the default index has CUDA and its libraries.
COPY pyproject.toml constraints.txt README.md ./
COPY benchbench/__init__.py benchbench/
RUN case "$DEVICE" in \
        cpu) index="${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" ;; \
        cuda) index="${TORCH_INDEX:--}" ;; \
        *) echo "DEVICE is cpu or cuda, not $DEVICE"; exit 1 ;; \
    esac \
    && if [ "$index" = - ]; then set --; else set -- --index-url "$index"; fi \
    && pip install --no-cache-dir --no-deps -c constraints.txt "$@" torch \
    && pip install --no-cache-dir -c constraints.txt -e '.[site]'

# A fixed number, so that volumes keep their owner from image to image.
RUN useradd --uid 10001 --no-create-home benchbench \
    && install -d -o benchbench /var/cache/benchbench /var/cache/benchbench/tmp \
    && install -d -o benchbench -m 0700 /var/lib/benchbench-secrets
COPY . .
USER 10001
EXPOSE 8000
CMD ["daphne", "-b", "0.0.0.0", "-p", "8000", "benchbench.asgi:application"]
