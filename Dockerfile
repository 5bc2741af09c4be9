# The image that deploy/ and charts/ name; docs/image.md says what is in it. Build: docker build -t loadmaster:0.2.0 .
# The last stage copies finished trees: what the other stages remove takes no space, and a change of our code changes only
# the last, small layer. Nothing here needs BuildKit.
ARG BASE=docker.io/library/python:3.12-slim
# Where pip runs: BASE, or BASE with what your network asks for, such as certificates and a pip.conf. Nothing of that is
# in the image.
ARG BUILDER=${BASE}

# The libraries, as locked, and what builds our wheel. Wheels only: no code of theirs runs here and no compiler is needed.
FROM ${BUILDER} AS dependencies
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/loadmaster \
 && /opt/loadmaster/bin/pip install --no-cache-dir --no-compile --disable-pip-version-check \
    --only-binary :all: --require-hashes --requirement requirements.lock

# Our own files alone, below /out. `-s` takes /out from the names that tracebacks show.
FROM dependencies AS program
COPY pyproject.toml README.md LICENSE ./
COPY scheduler scheduler
COPY plugins plugins
RUN /opt/loadmaster/bin/pip install --no-cache-dir --no-compile --disable-pip-version-check \
    --no-index --no-deps --no-build-isolation --root /out . \
 && PYTHONHASHSEED=0 /opt/loadmaster/bin/python -m compileall -qf -s /out --invalidation-mode unchecked-hash /out

# The libraries without what does not run.
FROM dependencies AS libraries
RUN set -eu; \
    cd /opt/loadmaster/lib/python3*/site-packages; \
    /opt/loadmaster/bin/python -m pip uninstall --quiet --yes setuptools pip; \
    # Scripts of the venv and of the libraries; what stays are links to Python, and ours comes later.
    find /opt/loadmaster/bin -type f -delete; \
    # Bazel's runfiles, which cel-expr-python's wheel ships by mistake. The hyphen makes them impossible to import.
    rm -rf bazel-project; \
    # Tests, type stubs, headers, static libraries and sources. numpy's headers serve compilers, of which there are none.
    find . -depth -type d -name tests -exec rm -rf {} +; \
    rm -rf numpy/_core/include; \
    find . -type f \( -name '*_test.py' -o -name '*.pyi' -o -name '*.a' -o -name '*.c' -o -name '*.h' \
        -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' \) -delete; \
    # 73 MB of classes that the kubernetes package generates for every type and call, sync and async. It loads them one by
    # one when they are asked for. Of the package we use how to elect a leader; our client is scheduler/kube/http/client.py.
    # What the package itself loads stays.
    /opt/loadmaster/bin/python -B -c "import sys, pathlib, kubernetes.aio; \
        loaded = {getattr(module, '__file__', None) for module in sys.modules.values()}; \
        [path.unlink() for client in ('client', 'aio/client') for part in ('api', 'models') \
            for path in pathlib.Path(kubernetes.__path__[0], client, part).glob('*.py') \
            if path.name != '__init__.py' and str(path) not in loaded]"; \
    # All that is left is compiled ahead, since the user can write no bytecode. Python does not compare it with the source:
    # nothing here changes after the build, and tools that give all files one date do no harm.
    PYTHONHASHSEED=0 /opt/loadmaster/bin/python -m compileall -qf --invalidation-mode unchecked-hash .; \
    # Fail here if something was removed that is needed.
    /opt/loadmaster/bin/python -c "import aiohttp, cel_expr_python, cryptography.x509, kopf, kubernetes.aio.leaderelection, \
        msgspec, numpy.testing, opentelemetry.exporter.otlp.proto.http.trace_exporter, orjson, prometheus_client, uvloop, yaml"

# Debian and Python without what does not run.
FROM ${BASE} AS system
RUN set -eu; \
    cd "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"; \
    rm -rf ensurepip idlelib lib2to3 tkinter turtle.py turtledemo site-packages/* config-* lib-dynload/_tkinter.* \
        lib-dynload/_test* lib-dynload/_xxtest* lib-dynload/xx* /usr/local/include /usr/local/lib/pkgconfig; \
    rm -f /usr/local/bin/2to3* /usr/local/bin/idle* /usr/local/bin/pip* /usr/local/bin/pydoc* /usr/local/bin/*-config; \
    find . -depth -type d \( -name test -o -name tests \) -exec rm -rf {} +; \
    find . -type f -name '*.a' -delete; \
    PYTHONHASHSEED=0 python -m compileall -qf --invalidation-mode unchecked-hash .; \
    # The package manager, and Perl, which only its scripts need. dpkg's list of packages stays right, for scanners.
    dpkg --purge --force-depends --force-remove-essential --force-remove-protected $(dpkg-query -W -f '${Package}\n' \
        apt 'libapt-pkg*' debconf debian-archive-keyring gpgv sqv 'perl*' 'libperl*' 2>/dev/null); \
    rm -rf /etc/apt /var/lib/apt /var/cache/* /var/log/* /var/lib/dpkg/*-old /var/backups/* /root/.[!.]*; \
    # No program changes the user it runs as.
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +; \
    # The program needs no name; `id` and shells show one.
    echo 'loadmaster:x:65532:65532::/nonexistent:/usr/sbin/nologin' >> /etc/passwd; \
    echo 'loadmaster:x:65532:' >> /etc/group

FROM scratch
COPY --from=system / /
COPY --from=libraries /opt/loadmaster /opt/loadmaster
COPY --from=program /out /
ARG BASE
ARG VERSION=0.2.0
ARG REVISION=
LABEL org.opencontainers.image.title="Loadmaster" \
      org.opencontainers.image.description="A Kubernetes scheduler in Python with kube-scheduler's semantics" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/loadmaster/loadmaster" \
      org.opencontainers.image.base.name="${BASE}"
USER 65532:65532
# HOME, as libraries ask for it when they are imported and some runtimes set none.
ENV HOME=/nonexistent \
    LANG=C.UTF-8 \
    PATH=/opt/loadmaster/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
EXPOSE 10259
ENTRYPOINT ["/opt/loadmaster/bin/loadmaster"]
CMD ["run"]
