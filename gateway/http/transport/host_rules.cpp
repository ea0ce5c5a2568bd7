#include "http/transport/host_rules.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

namespace fjord::gateway {
namespace {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

bool is_address(const std::string& name) {
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  return !error;
}

/// True for localhost, and for the addresses 127.0.0.0/8 and ::1. A name such as 127.0.0.1.example.org is none.
bool is_loopback(const std::string& name) {
  if (name == "localhost" || name.ends_with(".localhost") || name == "::1") return true;
  return name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string::npos && is_address(name);
}

/// Methods that change nothing: a page of another site does not see their answers without a header that permits it.
bool is_safe(const std::string& method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

}  // namespace

HostRules::Name HostRules::parse(std::string_view authority) {
  Name result;
  const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  const std::size_t colon = authority.rfind(':');
  const bool is_bare_address = bracket == std::string_view::npos && authority.find(':') != colon;
  if (is_bare_address || colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    result.name = lower_case(authority);
  } else {
    result.name = lower_case(authority.substr(0, colon));
    result.port = authority.substr(colon + 1);
  }
  if (result.name.starts_with('[') && result.name.ends_with(']'))
    result.name = result.name.substr(1, result.name.size() - 2);
  if (result.name.ends_with('.')) result.name.pop_back();
  return result;
}

HostRules::HostRules(const HttpGatewayOptions& options) {
  for (const std::string& host : options.allowed_hosts) names_.push_back(parse(host));
  is_any_ = std::any_of(names_.begin(), names_.end(), [](const Name& one) { return one.name == "*"; });
  is_local_ = true;
  for (const std::string& address : {options.address, options.tls_address}) {
    if (address.empty()) continue;
    known_.push_back(parse(address).name);
    is_local_ = is_local_ && is_loopback(known_.back());
  }
  if (!options.machine_name.empty()) known_.push_back(lower_case(options.machine_name));
}

bool HostRules::is_own(const Name& host) const {
  if (!names_.empty()) {
    return std::any_of(names_.begin(), names_.end(), [&](const Name& one) {
      return one.name == host.name && (one.port.empty() || one.port == host.port);
    });
  }
  if (is_loopback(host.name)) return true;
  return !is_local_ && (is_address(host.name) || std::find(known_.begin(), known_.end(), host.name) != known_.end());
}

bool HostRules::may_change(std::string_view site) const {
  const Name page = parse(site);
  return !site.empty() && std::any_of(names_.begin(), names_.end(),
                                      [&](const Name& one) { return one.name == page.name && one.port == page.port; });
}

std::optional<HostRules::Refusal> HostRules::check(const HttpRequest& request) const {
  // A request of HTTP/1.0 may have no host. Browsers send one.
  const std::string_view host = request.header("host");
  if (!host.empty() && !is_any_ && !is_own(parse(host))) {
    return Refusal{421,
                   fmt::format("this gateway does not answer to the host \"{}\": allowed_hosts in its configuration "
                               "names those that it answers to",
                               host)};
  }
  return check_page(request, host);
}

std::optional<HostRules::Refusal> HostRules::check_page(const HttpRequest& request, std::string_view host) const {
  const std::string_view origin = request.header("origin");
  const std::size_t slashes = origin.find("://");
  const std::string_view site = slashes == std::string_view::npos ? std::string_view() : origin.substr(slashes + 3);
  const bool is_listed = may_change(site);
  if (!site.empty()) {
    if (site == host || is_listed) return std::nullopt;
  }
  // What a browser says of the page that asks: same-origin, same-site, cross-site, or none for the user.
  const std::string_view relation = request.header("sec-fetch-site");
  if (is_safe(request.method)) {
    // A link may lead here. A picture, a script or a form of another site has no use for what is here.
    const bool is_link =
        request.header("sec-fetch-mode") == "navigate" && request.header("sec-fetch-dest") == "document";
    if (relation != "cross-site" || is_link) return std::nullopt;
  } else if (origin.empty() && relation != "cross-site" && relation != "same-site") {
    return std::nullopt;
  }
  return Refusal{403,
                 fmt::format("a page of \"{}\" may {} here: allowed_hosts in the configuration of the gateway names "
                             "those that may",
                             origin.empty() ? std::string_view("another site") : origin,
                             is_safe(request.method) ? "read nothing" : "change nothing")};
}

}  // namespace fjord::gateway
