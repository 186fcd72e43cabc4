# The course in a container, with all that its tests use:
#
#     docker build --tag lmcourse .
#     docker run --rm --init --publish 127.0.0.1:8888:8888 --volume "$PWD/notebooks:/course/notebooks" lmcourse
#     docker run --rm --init --security-opt seccomp=unconfined --security-opt systempaths=unconfined lmcourse make prove
#
# The first run opens JupyterLab and prints its address; work stays in notebooks/ of the clone. The second run tests the
# course. It needs the two options because grading runs each submission in bubblewrap, which creates namespaces, and
# Docker forbids that by default.
#
# PyTorch is the build without CUDA. With CUDA: --build-arg PIP_EXTRA_INDEX_URL= , and `docker run --gpus all`.
FROM python:3.12-slim-bookworm AS tools
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap chromium g++ git make nodejs \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 --shell /bin/bash learner
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ENV PIP_EXTRA_INDEX_URL=$PIP_EXTRA_INDEX_URL PIP_NO_CACHE_DIR=1
USER learner

FROM tools
WORKDIR /course
# First what changes seldom and takes minutes.
COPY --chown=learner Makefile requirements.lock ./
RUN make .venv/requirements.lock
COPY --chown=learner . .
RUN make .venv/requirements-test.lock
EXPOSE 8888
CMD ["make", "lab", "LAB_ARGS=--ip=0.0.0.0 --no-browser"]
