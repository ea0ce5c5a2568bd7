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

TEST_CASE("host rules: elsewhere addresses and the machine's name may come, or hosts that are named", "[gateway]") {
  HttpGatewayOptions open = listening_on("0.0.0.0:8080");
  open.machine_name = "Node7";
  open.tls_address = "fjord.example.org:8443";
  for (const char* host : {"10.0.0.7:8080", "192.168.1.1", "[2001:db8::1]:8080", "localhost", "node7:8080",
                           "FJORD.example.org:9", "127.0.0.1"}) {
    INFO(host);
    CHECK(refused(open, host) == 0);
  }
  // A name of another site can lead to this gateway.
  for (const char* host :
       {"evil.example:8080", "example.org", "10.0.0.7.example.org", "node7.example.org", "1.2.3", "x"}) {
    INFO(host);
    CHECK(refused(open, host) == 421);
    CHECK(refused(open, host, {}, "GET") == 421);
  }
  HttpGatewayOptions with_tls = listening_on("127.0.0.1:8080");
  with_tls.tls_address = "10.0.0.1:8443";
  CHECK(refused(with_tls, "10.0.0.2") == 0);
  CHECK(refused(with_tls, "example.org") == 421);
  with_tls.tls_address = "127.0.0.1:8443";
  CHECK(refused(with_tls, "10.0.0.2") == 421);
  const HttpGatewayOptions named = listening_on("0.0.0.0:8080", {"Fjord.example.org", "::1", "ported:8080"});
  CHECK(refused(named, "fjord.EXAMPLE.org:8080") == 0);
  CHECK(refused(named, "[::1]:8080") == 0);
  CHECK(refused(named, "ported:8080") == 0);
  CHECK(refused(named, "ported:8081") == 421);
  CHECK(refused(named, "other.example.org") == 421);
  CHECK(refused(named, "localhost") == 421);
  CHECK(refused(named, "10.0.0.7") == 421);
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
  CHECK(refused(listening_on("0.0.0.0:80"), "10.0.0.7", "http://example.org") == 403);
  CHECK(refused(listening_on("0.0.0.0:80"), "10.0.0.7", "http://10.0.0.7") == 0);
  const HttpGatewayOptions named = listening_on("0.0.0.0:80", {"fjord", "page.example.org", "other.example.org:444"});
  CHECK(refused(named, "fjord", "https://page.example.org") == 0);
  CHECK(refused(named, "fjord", "https://other.example.org:444") == 0);
  // Another program on a machine of the list.
  CHECK(refused(named, "fjord", "https://page.example.org:444") == 403);
  CHECK(refused(named, "fjord:80", "http://fjord:9999") == 403);
  CHECK(refused(named, "fjord", "https://other.example.org") == 403);
  CHECK(refused(named, "fjord", "https://example.org") == 403);
  CHECK(refused(listening_on("0.0.0.0:80", {"*"}), "fjord", "https://example.org") == 403);
}

TEST_CASE("host rules: what a browser says of the page counts, too", "[gateway]") {
  const HttpGatewayOptions options = listening_on("127.0.0.1:8080");
  const auto status = [&](const std::string& method, std::vector<HttpHeader> headers) {
    headers.push_back({"host", "127.0.0.1:8080"});
    const HttpRequest request{.method = method, .target = "/", .body = {}, .headers = std::move(headers)};
    const auto refusal = HostRules(options).check(request);
    return refusal ? refusal->status : 0U;
  };
  for (const char* site : {"cross-site", "same-site"}) CHECK(status("POST", {{"sec-fetch-site", site}}) == 403);
  for (const char* site : {"same-origin", "none"}) CHECK(status("POST", {{"sec-fetch-site", site}}) == 0);
  CHECK(status("POST", {{"sec-fetch-site", "same-origin"}, {"origin", "http://127.0.0.1:8080"}}) == 0);
  CHECK(status("GET", {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "no-cors"}}) == 403);
  CHECK(
      status("GET", {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "iframe"}}) ==
      403);
  CHECK(status("GET",
               {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}}) ==
        0);
  CHECK(status("GET", {{"sec-fetch-site", "same-origin"}, {"sec-fetch-mode", "cors"}}) == 0);
}

}  // namespace
}  // namespace fjord::gateway
