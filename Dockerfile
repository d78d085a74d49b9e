# exactrank with the extra `serve`: docker run --publish 8000:8000 --volume "$PWD/models:/models:ro" exactrank serve web=/models/web.json --host 0.0.0.0
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/exactrank && /opt/exactrank/bin/pip install --no-cache-dir '.[serve]'

FROM python:3.13-slim
RUN useradd --system --no-create-home --uid 10001 exactrank
COPY --from=build /opt/exactrank /opt/exactrank
ENV PATH=/opt/exactrank/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["exactrank"]
CMD ["--help"]
