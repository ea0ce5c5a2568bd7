#include <algorithm>
#include <cstdint>

#include "http/transport/http1_session.h"
#include "http_fuzz_world.h"

namespace {

using namespace fjord::gateway;

/// Returns the requests that handlers receive if the bytes come in parts of this size.
std::string requests_in(FuzzServer& server, std::string_view bytes, std::size_t part) {
  server.seen.clear();
  const auto host = std::make_shared<FuzzHost>();
  Http1Session session(server.server, *host);
  for (std::size_t at = 0; at < bytes.size(); at += part) talk(session, *host, bytes.substr(at, part));
  // The session has answered everything, so it waits for bytes or for time, or it ends.
  FJORD_CHECK(session.is_over() || session.wants_input());
  session.on_time(session.deadline());
  talk(session, *host, {});
  session.receive_end();
  talk(session, *host, {});
  session.abandon();
  return server.seen;
}

}  // namespace

/// Reads the input as bytes of an HTTP/1 client; the first byte says how they are cut into parts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzServer server;
  constexpr std::size_t kBytesMax = 8000;
  if (size < 2 || size > kBytesMax) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = requests_in(server, bytes, bytes.size());
  FJORD_CHECK(requests_in(server, bytes, 1 + data[0] % 64) == whole);
  return 0;
}
