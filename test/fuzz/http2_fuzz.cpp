#include <cstdint>

#include "http/transport/http2_session.h"
#include "http_fuzz_world.h"

/// Reads the input as frames of an HTTP/2 client, after its preface; the first byte says how they are cut into parts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fjord::gateway;
  static FuzzServer server;
  if (size < 2) return 0;
  server.seen.clear();
  const auto host = std::make_shared<FuzzHost>();
  Http2Session session(server.server, *host);
  constexpr char kBegin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
  talk(session, *host, std::string_view(kBegin, sizeof(kBegin) - 1));
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t part = 1 + data[0] * 16;
  for (std::size_t at = 0; at < bytes.size(); at += part) talk(session, *host, bytes.substr(at, part));
  FJORD_CHECK(session.is_over() || session.wants_input());
  session.on_time(HttpClock::now() + std::chrono::hours(1));
  talk(session, *host, {});
  session.drain();
  talk(session, *host, {});
  session.receive_end();
  talk(session, *host, {});
  session.abandon();
  return 0;
}
