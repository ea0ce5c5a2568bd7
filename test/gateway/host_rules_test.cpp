#include "http/transport/host_rules.h"

#include <catch2/catch.hpp>

namespace fjord::gateway {
namespace {

HttpGatewayOptions listening_on(std::string address, std::vector<std::string> hosts = {}) {
  HttpGatewayOptions options;
  options.address = std::move(address);
  options.allowed_hosts = std::move(hosts);
  return options;
}

/// Returns the status of the refusal; 0 if there is none.
unsigned refused(const HttpGatewayOptions& options, const std::string& host, const std::string& origin = {},
                 const std::string& method = "POST") {
  HttpRequest request{.method = method, .target = "/", .body = {}};
  if (!host.empty()) request.headers.push_back({"host", host});
  if (!origin.empty()) request.headers.push_back({"origin", origin});
  const auto refusal = HostRules(options).check(request);
  return refusal ? refusal->status : 0;
}

TEST_CASE("host rules: a gateway on loopback answers to names of loopback", "[gateway]") {
  const HttpGatewayOptions options = listening_on("127.0.0.1:8080");
  for (const char* host : {"localhost", "LocalHost:8080", "localhost.", "a.localhost", "127.0.0.1:8080", "127.9.9.9",
                           "[::1]:8080", "[::1]", ""}) {
    INFO(host);
    CHECK(refused(options, host) == 0);
  }
  for (const char* host : {"example.org", "example.org:8080", "127.0.0.1.example.org", "127.x", "localhost.example.org",
                           "xlocalhost", "128.0.0.1", "[::2]:8080", "0.0.0.0"}) {
    INFO(host);
    CHECK(refused(options, host) == 421);
    CHECK(refused(options, host, {}, "GET") == 421);
  }
  CHECK(refused(listening_on("localhost:0"), "example.org") == 421);
  CHECK(refused(listening_on("[::1]:80"), "example.org") == 421);
}

TEST_CASE("host rules: elsewhere any host may come, or those that are named", "[gateway]") {
  CHECK(refused(listening_on("0.0.0.0:8080"), "example.org") == 0);
  HttpGatewayOptions with_tls = listening_on("127.0.0.1:8080");
  with_tls.tls_address = "10.0.0.1:8443";
  CHECK(refused(with_tls, "example.org") == 0);
  with_tls.tls_address = "127.0.0.1:8443";
  CHECK(refused(with_tls, "example.org") == 421);
  const HttpGatewayOptions named = listening_on("0.0.0.0:8080", {"Fjord.example.org", "::1"});
  CHECK(refused(named, "fjord.EXAMPLE.org:8080") == 0);
  CHECK(refused(named, "other.example.org") == 421);
  CHECK(refused(named, "localhost") == 421);
  CHECK(refused(listening_on("127.0.0.1:8080", {"a", "*"}), "example.org") == 0);
}

TEST_CASE("host rules: pages of others change nothing", "[gateway]") {
  const HttpGatewayOptions options = listening_on("127.0.0.1:8080");
  CHECK(refused(options, "127.0.0.1:8080", "http://127.0.0.1:8080") == 0);
  for (const char* origin :
       {"http://example.org", "http://127.0.0.1:9999", "null", "https://127.0.0.1", "127.0.0.1:8080"}) {
    INFO(origin);
    for (const char* method : {"POST", "PUT", "DELETE"})
      CHECK(refused(options, "127.0.0.1:8080", origin, method) == 403);
    for (const char* method : {"GET", "HEAD", "OPTIONS"})
      CHECK(refused(options, "127.0.0.1:8080", origin, method) == 0);
  }
  CHECK(refused(listening_on("0.0.0.0:80"), "fjord", "http://example.org") == 403);
  CHECK(refused(listening_on("0.0.0.0:80"), "fjord", "http://fjord") == 0);
  const HttpGatewayOptions named = listening_on("0.0.0.0:80", {"fjord", "page.example.org"});
  CHECK(refused(named, "fjord", "https://page.example.org:444") == 0);
  CHECK(refused(named, "fjord", "https://example.org") == 403);
  CHECK(refused(listening_on("0.0.0.0:80", {"*"}), "fjord", "https://example.org") == 403);
}

}  // namespace
}  // namespace fjord::gateway
