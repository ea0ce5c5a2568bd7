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
  bool is_own(std::string_view authority) const;

  std::vector<std::string> names_;  ///< In lower case, without port.
  bool is_any_ = false;
};

}  // namespace fjord::gateway
