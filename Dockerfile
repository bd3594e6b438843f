# The image of the action. The base is an argument, so that a mirror or another Python can stand in; releases name it
# by its digest. All Python packages are locked in requirements/, with the digests of their files. Two builds from the same
# base and Debian packages have the same digest if the builder gives all files one time, as the release workflow does.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /source
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/gate
COPY requirements requirements
RUN /opt/pip/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/build.txt \
    && /opt/pip/bin/python -m pip --python /opt/gate/bin/python install --no-cache-dir --no-compile \
    --require-hashes --only-binary :all: -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY gate gate
# Bytecode that is never checked against its source: quick to start, and the same in every build.
RUN /opt/pip/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/pip/bin/python -m pip --python /opt/gate/bin/python install --no-cache-dir --no-compile --no-deps --no-index \
    /wheel/*.whl \
    && PYTHONHASHSEED=0 /opt/gate/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/gate/lib

FROM ${BASE}
# The last two lines of `rm` remove what differs between two builds: logs, and copies that apt and dpkg keep.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* \
    /var/cache/apt/*.bin /var/cache/debconf/*-old /var/cache/ldconfig/* /var/lib/dpkg/*-old \
    /var/log/alternatives.log /var/log/apt /var/log/dpkg.log
# The workspace is mounted and belongs to another user; this image serves one job and nothing else.
RUN git config --system --add safe.directory '*' \
    && ln -s /opt/gate/bin/uv /usr/local/bin/uv
COPY --from=build /opt/gate /opt/gate
# Isolated mode: nothing in the workspace, which is the working directory, can stand in for a module of ours.
ENTRYPOINT ["/opt/gate/bin/python", "-I", "-u", "-m", "gate.action.entrypoint"]
