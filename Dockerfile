# A static binary and the certificates it needs to reach a provider; no shell.
#
#   docker run -p 127.0.0.1:8790:8790 --stop-timeout 40 unbroken
#
# The stop timeout lets streams end: the drain is 30 s.
FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel COMMIT= DATE=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X main.version=${VERSION} -X main.commit=${COMMIT} -X main.date=${DATE}" \
      -o /unbroken ./cmd/proxy

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /unbroken /unbroken
USER 65532:65532
# From outside the container only the proxy is reachable; the admin listener stays
# on the container's own loopback unless it is given an address and a token.
ENV UNBROKEN_LISTEN=0.0.0.0:8790
EXPOSE 8790
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s CMD ["/unbroken", "health"]
ENTRYPOINT ["/unbroken"]
