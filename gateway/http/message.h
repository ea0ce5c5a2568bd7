#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::gateway {

struct HttpHeader {
  std::string name;
  std::string value;
};

/// A request whose body has arrived and is not compressed any more.
struct HttpRequest {
  std::string method;
  std::string target;  ///< Path and query as they were sent, escaped.
  std::string body;
  std::vector<HttpHeader> headers = {};  ///< Names in lower case.
  std::string request_id = {};           ///< Names the request in the log and in the answer.
  std::string client = {};               ///< Whom the client's address belongs to: the address, or its first 64 bits.

  /// Returns the value of a header; empty if there is none. `name` is in lower case.
  std::string_view header(std::string_view name) const;
  std::string_view raw_path() const { return std::string_view(target).substr(0, target.find('?')); }
};

struct HttpAnswer {
  unsigned status = 200;
  std::string body = {};
  std::string content_type = "application/json; charset=UTF-8";
  std::string allow = {};                ///< Value of the header Allow; empty: none.
  int retry_after_seconds = 0;           ///< 0: the answer has no header Retry-After.
  std::vector<HttpHeader> headers = {};  ///< Further headers.
};

/// Must be called once, on any thread.
using HttpDone = std::function<void(HttpAnswer)>;

/// Compares without regard to the case of ASCII letters. `lower` has none in upper case.
bool is_same_word(std::string_view text, std::string_view lower);

/// Checks that a header Accept can be read (RFC 9110). Errors: InvalidArgument.
Status check_accept(std::string_view accept);

/// Returns the quality of a media type in the value of a header Accept, of which wildcards do not count; 0 if it is not
/// there.
double quality_of(std::string_view accept, std::string_view media_type);

/// Decodes one segment of a path or one value of a query: %XX, and + for a space. Errors: InvalidArgument.
Result<std::string> decode_url(std::string_view text);
/// Splits at every / and decodes each segment. The first segment of "/a" is "a". Errors: those of decode_url().
Result<std::vector<std::string>> split_path(std::string_view path);

/// The parameters of a request.
class HttpQuery {
 public:
  /// Errors: InvalidArgument for a known parameter without a value or that is there twice, or a malformed escape.
  /// Unknown parameters are ignored.
  static Result<HttpQuery> parse(std::string_view target);
  /// As parse(), but with parameters of these names only. Errors: InvalidArgument also for a parameter of another name.
  static Result<HttpQuery> parse_known(std::string_view target, const std::vector<std::string>& names);

  /// Forgets the parameters that are not named.
  void keep_only(const std::vector<std::string>& names);

  /// Returns the value; absent if the parameter was not sent.
  const std::string* find(const std::string& name) const;
  /// Errors of flag(), number() and duration_ms(): InvalidArgument.
  Result<bool> flag(const std::string& name, bool otherwise) const;
  Result<std::optional<std::int64_t>> number(const std::string& name) const;
  /// Returns milliseconds; a number without a unit is in seconds.
  Result<std::optional<std::int64_t>> duration_ms(const std::string& name) const;

 private:
  Status add(std::string name, std::string value);

  std::map<std::string, std::string> values_;
};

/// Uncompresses gzip. Passes the number of bytes so far to `hold`, which refuses them by returning false.
/// Errors: InvalidArgument if the data is malformed; TooLarge if the text has more than `bytes_max` bytes; Busy if
/// `hold` refuses.
Result<std::string> gunzip(std::string_view compressed, std::size_t bytes_max,
                           const std::function<bool(std::size_t)>& hold);
/// Converts a text to the characters A-Z a-z 0-9 - _ and back. Errors: InvalidArgument.
std::string to_token(std::string_view text);
Result<std::string> from_token(std::string_view token);

}  // namespace fjord::gateway
