# The site, its workers and its commands. Build for CPU: --build-arg TORCH_INDEX=<an index with torch's CPU build>.
FROM python:3.11-slim

ARG TORCH_INDEX=
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HOME=/var/cache/benchbench/models \
    BENCHBENCH_DATA_DIR=/var/cache/benchbench/data
WORKDIR /app

# The packages first: they change seldom, and are most of the image.
COPY pyproject.toml constraints.txt README.md ./
RUN pip install --no-cache-dir --no-deps -c constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch \
    && pip install --no-cache-dir -c constraints.txt -e .

RUN useradd --system benchbench && install -d -o benchbench /var/cache/benchbench
COPY . .
USER benchbench
EXPOSE 8000
CMD ["daphne", "-b", "0.0.0.0", "-p", "8000", "benchbench.asgi:application"]
