# The image of the action. The base is an argument, so that a mirror or another Python can stand in; releases name it
# by its digest. Everything else that is installed by pip is in the lock, with the digests of its files. Built twice
# with the same base, packages of Debian and SOURCE_DATE_EPOCH, the image has the same files, byte for byte.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
ARG SOURCE_DATE_EPOCH=0
WORKDIR /source
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/gate
COPY requirements requirements
RUN /opt/pip/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/build.txt \
    && /opt/pip/bin/python -m pip --python /opt/gate/bin/python install --no-cache-dir --no-compile \
    --require-hashes --only-binary :all: -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY gate gate
# Compiled by content rather than time, and never checked again: quick to start, and the same in every build.
RUN /opt/pip/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/pip/bin/python -m pip --python /opt/gate/bin/python install --no-cache-dir --no-compile --no-deps --no-index \
    /wheel/*.whl \
    && PYTHONHASHSEED=0 /opt/gate/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/gate/lib \
    && find /opt/gate -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH}" {} +

FROM ${BASE}
ARG SOURCE_DATE_EPOCH=0
# Perl is what git's own package is mostly made of, and what none of the commands that fetch, push or read here is written
# in. The record of git's package no longer asks for it, so that a `setup` can install packages, and Perl among them.
# hadolint ignore=DL3008
RUN touch /tmp/began \
    && apt-get update \
    && apt-get install --yes --no-install-recommends -o Dpkg::Options::=--path-exclude=/usr/share/doc/* \
    -o Dpkg::Options::=--path-include=/usr/share/doc/*/copyright -o Dpkg::Options::=--path-exclude=/usr/share/man/* \
    -o Dpkg::Options::=--path-exclude=/usr/share/locale/* ca-certificates git openssh-client \
    && dpkg --purge --force-depends git-man liberror-perl perl \
    && sed -i '/^Package: git$/,/^$/{/^Depends:/s/, \(git-man ([^)]*)\|liberror-perl\|perl\)//g}' /var/lib/dpkg/status \
    && apt-get autoremove --purge --yes \
    && apt-get check \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig/* /var/cache/debconf/*-old \
    /var/lib/dpkg/*-old /var/log/apt/* /var/log/dpkg.log /var/log/alternatives.log \
    # Servers, mail and large clones: programs of git that no step runs.
    /usr/bin/git-shell /usr/bin/scalar /usr/lib/git-core/git-daemon /usr/lib/git-core/git-http-backend \
    /usr/lib/git-core/git-imap-send /usr/lib/git-core/git-shell /usr/lib/git-core/scalar \
    && ln -sf /usr/bin/git /usr/lib/git-core/git \
    # The workspace is mounted and belongs to another user; this image serves one job and nothing else.
    && git config --system --add safe.directory '*' \
    && ln -s /opt/gate/bin/uv /usr/local/bin/uv \
    && find /etc /usr /var -xdev -cnewer /tmp/began -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH}" {} + \
    && rm /tmp/began
COPY --from=build /opt/gate /opt/gate
# Isolated mode: nothing in the workspace, which is the working directory, can stand in for a module of ours.
ENTRYPOINT ["/opt/gate/bin/python", "-I", "-u", "-m", "gate.action.entrypoint"]
