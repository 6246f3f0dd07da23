# The site, its workers and its commands, for CPUs or for NVIDIA's GPUs: docker build --build-arg DEVICE=cuda .
FROM python:3.11.14-slim-trixie

ARG DEVICE=cpu
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HOME=/var/cache/benchbench/models \
    BENCHBENCH_DATA_DIR=/var/cache/benchbench/data
WORKDIR /app

# The packages first: they change seldom, and are most of the image. torch of the default index has CUDA and its libraries.
COPY pyproject.toml constraints.txt README.md ./
RUN case "$DEVICE" in \
        cpu) index="--index-url https://download.pytorch.org/whl/cpu" ;; \
        cuda) index= ;; \
        *) echo "DEVICE is cpu or cuda, not $DEVICE"; exit 1 ;; \
    esac \
    && pip install --no-cache-dir --no-deps -c constraints.txt $index torch \
    && pip install --no-cache-dir -c constraints.txt -e '.[site]'

# A fixed number, so that volumes keep their owner from image to image.
RUN useradd --uid 10001 --no-create-home benchbench && install -d -o benchbench /var/cache/benchbench
COPY . .
USER 10001
EXPOSE 8000
CMD ["daphne", "-b", "0.0.0.0", "-p", "8000", "benchbench.asgi:application"]
