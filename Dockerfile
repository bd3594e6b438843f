# The image of the action. The base is an argument, so that a mirror or another Python can stand in.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/gate
COPY pyproject.toml README.md LICENSE ./
COPY gate gate
RUN /opt/pip/bin/python -m pip --python /opt/gate/bin/python install --no-cache-dir --compile ".[traces]" uv

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    # The workspace is mounted and belongs to another user; this image serves one job and nothing else.
    && git config --system --add safe.directory '*' \
    && ln -s /opt/gate/bin/uv /usr/local/bin/uv
COPY --from=build /opt/gate /opt/gate
# Isolated mode: nothing in the workspace, which is the working directory, can stand in for a module of ours.
ENTRYPOINT ["/opt/gate/bin/python", "-I", "-u", "-m", "gate.action.entrypoint"]
