#include "http/transport/request_check.h"

#include <algorithm>

namespace fjord::gateway {
namespace {

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Returns the lower case of an ASCII letter.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

void add_header(std::vector<HttpHeader>& headers, std::string_view name, std::string_view value) {
  std::string key(name);
  std::transform(key.begin(), key.end(), key.begin(), [](char c) { return lower(c); });
  for (HttpHeader& one : headers) {
    if (one.name != key) continue;
    one.value.append(", ").append(value);
    return;
  }
  headers.push_back({std::move(key), std::string(value)});
}

bool is_host(std::string_view text) {
  if (text.empty()) return false;
  std::size_t end = 0;
  if (text.front() == '[') {
    end = text.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    for (const char c : text.substr(1, end - 1)) {
      if (!is_alphanumeric(c) && c != ':' && c != '.') return false;
    }
    ++end;
  } else {
    while (end < text.size() &&
           (is_alphanumeric(text[end]) || text[end] == '.' || text[end] == '-' || text[end] == '_')) {
      ++end;
    }
    if (end == 0) return false;
  }
  if (end == text.size()) return true;
  const std::string_view port = text.substr(end + 1);
  return text[end] == ':' && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

bool names_host(std::string_view target, std::string_view host) {
  if (target.starts_with('/')) return true;
  const std::size_t slashes = target.find("://");
  if (slashes == std::string_view::npos) return true;
  const std::string_view rest = target.substr(slashes + 3);
  const std::string_view named = rest.substr(0, rest.find_first_of("/?#"));
  return std::equal(named.begin(), named.end(), host.begin(), host.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

Status to_path(std::string& target) {
  if (target.starts_with('/') || target == "*") return Status::ok();
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!is_same_word(std::string_view(target).substr(0, scheme.size()), scheme)) continue;
    const std::size_t slash = target.find_first_of("/?", scheme.size());
    target.erase(0, slash);
    if (!target.starts_with('/')) target.insert(0, "/");
    return Status::ok();
  }
  return {StatusCode::InvalidArgument, "the target is not a path"};
}

Status check_head_bytes(std::string_view head, std::size_t begin) {
  for (std::size_t i = begin; i < head.size(); ++i) {
    const char c = head[i];
    const char before = i > 0 ? head[i - 1] : '\0';
    if (c == '\0') return {StatusCode::InvalidArgument, "a byte of the header is zero"};
    if (c == '\n' && before != '\r')
      return {StatusCode::InvalidArgument, "a line of the header does not end with CR and LF"};
    if (before == '\r' && c != '\n') return {StatusCode::InvalidArgument, "CR within a line of the header"};
    if (before == '\n' && (c == ' ' || c == '\t')) return {StatusCode::InvalidArgument, "a folded line in the header"};
  }
  return Status::ok();
}

}  // namespace fjord::gateway
