#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fjord/gateway/http_gateway.h"
#include "http/message.h"

namespace fjord::gateway {

/// The names that a gateway answers to, and the pages that may change something. They keep out pages of other sites in
/// a browser, which may come under a name of their own that leads here (DNS rebinding), or send requests that need no
/// permission (cross-site request forgery).
///
/// A gateway on loopback answers to the names of loopback. Another one without a list answers to addresses, which need
/// no lookup that leads elsewhere, to the name of its machine, and to those that it was configured to listen on.
///
/// Threading: any thread.
class HostRules {
 public:
  explicit HostRules(const HttpGatewayOptions& options);

  struct Refusal {
    unsigned status = 0;
    std::string message;
  };
  /// Returns the refusal of a request; absent if it may come.
  std::optional<Refusal> check(const HttpRequest& request) const;

 private:
  struct Name {
    std::string name;  ///< In lower case.
    std::string port;  ///< Empty: none was named.
  };
  static Name parse(std::string_view authority);
  bool is_own(const Name& host) const;
  /// Returns true for the site of a page that is in the list. Another program on the same machine is not.
  bool may_change(std::string_view site) const;
  std::optional<Refusal> check_page(const HttpRequest& request, std::string_view host) const;

  std::vector<Name> names_;         ///< From the configuration.
  std::vector<std::string> known_;  ///< Without names_: further names.
  bool is_any_ = false;
  bool is_local_ = false;  ///< Listens on loopback only.
};

}  // namespace fjord::gateway
