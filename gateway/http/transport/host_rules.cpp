#include "http/transport/host_rules.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::gateway {
namespace {

/// Returns the name or the address, in lower case, without port, brackets and the dot at the end.
std::string name_of(std::string_view authority) {
  std::string name;
  if (authority.starts_with('[')) {
    name = authority.substr(1, authority.find(']') - 1);
  } else {
    name = authority.substr(0, authority.rfind(':'));
  }
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (name.ends_with('.')) name.pop_back();
  return name;
}

/// True for localhost, and for the addresses 127.0.0.0/8 and ::1. A name such as 127.0.0.1.example.org is none.
bool is_loopback(const std::string& name) {
  if (name == "localhost" || name.ends_with(".localhost") || name == "::1") return true;
  return name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos;
}

/// Methods that change nothing: a page of another site does not see their answers without a header that permits it.
bool is_safe(const std::string& method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

}  // namespace

HostRules::HostRules(const HttpGatewayOptions& options) {
  for (const std::string& host : options.allowed_hosts) names_.push_back(name_of(host));
  const auto is_local = [](const std::string& address) { return address.empty() || is_loopback(name_of(address)); };
  is_any_ = std::find(names_.begin(), names_.end(), "*") != names_.end() ||
            (names_.empty() && !(is_local(options.address) && is_local(options.tls_address)));
}

bool HostRules::is_own(std::string_view authority) const {
  const std::string name = name_of(authority);
  return names_.empty() ? is_loopback(name) : std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::optional<HostRules::Refusal> HostRules::check(const HttpRequest& request) const {
  // A request of HTTP/1.0 may have no host. Browsers send one.
  const std::string_view host = request.header("host");
  if (!host.empty() && !is_any_ && !is_own(host)) {
    return Refusal{421,
                   fmt::format("this gateway does not answer to the host \"{}\": allowed_hosts in its configuration "
                               "names those that it answers to",
                               host)};
  }
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_safe(request.method)) return std::nullopt;
  const std::size_t slashes = origin.find("://");
  const std::string_view site = slashes == std::string_view::npos ? std::string_view() : origin.substr(slashes + 3);
  const bool is_listed = !names_.empty() && !site.empty() && is_own(site);
  if (site == host || is_listed) return std::nullopt;
  return Refusal{403, fmt::format("a page of \"{}\" may change nothing here: allowed_hosts in the configuration of the "
                                  "gateway names those that may",
                                  origin)};
}

}  // namespace fjord::gateway
