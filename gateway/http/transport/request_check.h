#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "http/message.h"

namespace fjord::gateway {

/// Adds a header. If the header is there already, appends the value to its value after a comma. The name may have any
/// case.
void add_header(std::vector<HttpHeader>& headers, std::string_view name, std::string_view value);

/// Returns true for the value of a header Host or of :authority: a name or an address, and perhaps a port.
bool is_host(std::string_view text);

/// Changes "http://host/path", as proxies send it, to "/path". Errors: InvalidArgument if the target is neither a path
/// nor "*".
Status to_path(std::string& target);

/// Returns true if the target names no host, or this one. Others may serve a request with two hosts by either.
bool names_host(std::string_view target, std::string_view host);

/// Checks the bytes of an HTTP/1.1 header from `begin` on: lines end with CR and LF, none is folded, and no byte is
/// zero. Other programs may read a header without these rules as another request. Errors: InvalidArgument.
Status check_head_bytes(std::string_view head, std::size_t begin);

}  // namespace fjord::gateway
