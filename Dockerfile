# The image that deploy/ and charts/ name. Build: docker build -t loadmaster:0.1.0 .
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements-dev.lock ./
COPY scheduler scheduler
COPY plugins plugins
# As constraints, the lock's versions pin what the wheel needs to what was tested.
RUN grep '^[a-zA-Z]' requirements-dev.lock | sed 's/ *\\$//' > constraints.txt \
 && python -m venv /opt/loadmaster \
 && /opt/loadmaster/bin/pip install --no-cache-dir --constraint constraints.txt '.[fast]'

FROM python:3.12-slim
COPY --from=build /opt/loadmaster /opt/loadmaster
USER 65532:65532
ENV PYTHONUNBUFFERED=1
EXPOSE 10259
ENTRYPOINT ["/opt/loadmaster/bin/loadmaster"]
CMD ["run"]
