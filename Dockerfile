# brokersim for a user who is not root:
#
#   docker build -t brokersim .
#   docker run --rm -v "$PWD:/work" -w /work brokersim demo
#   docker run --rm brokersim test
FROM python:3.13-slim

RUN useradd --create-home brokersim
USER brokersim
# made by the user, whom it therefore belongs to
RUN mkdir /home/brokersim/brokersim
WORKDIR /home/brokersim/brokersim
COPY --chown=brokersim . .

# the first start installs everything; later ones only check that it is there
RUN ./brokersim --version

ENTRYPOINT ["/home/brokersim/brokersim/brokersim"]
CMD ["--help"]
