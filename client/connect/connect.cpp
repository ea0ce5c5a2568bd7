#include "fjord/client/connect.h"

#include <charconv>
#include <fmt/core.h>
#include <utility>

namespace fjord {

namespace {

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Status bad(std::string_view part, std::string_view what) {
  return Status(StatusCode::InvalidArgument, fmt::format("address \"{}\": {}; expected host:port", part, what));
}

Status check_address(std::string_view part) {
  if (part.empty()) return bad(part, "it is empty");
  const std::size_t colon = part.rfind(':');
  if (colon == std::string_view::npos) return bad(part, "it has no port");
  const std::string_view host = part.substr(0, colon);
  const std::string_view port = part.substr(colon + 1);
  if (host.empty()) return bad(part, "it has no host");
  if (host.find_first_of(" \t") != std::string_view::npos) return bad(part, "the host contains a space");
  const bool in_brackets = host.front() == '[' && host.back() == ']' && host.size() > 2;
  if (!in_brackets && host.find_first_of(":[]") != std::string_view::npos) {
    return bad(part, "a host with colons stands in brackets");
  }
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
    return bad(part, fmt::format("\"{}\" is not a port from 1 to 65535", port));
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> parse_addresses(std::string_view text) {
  std::vector<std::string> addresses;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    const std::string_view part = trim(text.substr(begin, comma == std::string_view::npos ? comma : comma - begin));
    FJORD_TRY(check_address(part));
    addresses.emplace_back(part);
    if (comma == std::string_view::npos) return addresses;
    begin = comma + 1;
  }
}

Connection::Connection(ConnectOptions options)
    : bulk_(make_inline_bulk_executor()),
      env_(make_posix_env()),
      random_(Random::from_system()),
      runtime_{clock_, scheduler_, *bulk_, *env_, random_, metrics_, tunables_},
      executor_(scheduler_.make_executor("fjord-client")),
      transport_(std::make_unique<rpc::ThriftTransport>(options.transport, metrics_)),
      client_(std::make_unique<AsyncClient>(std::move(options.client), runtime_, *transport_, *executor_)) {}

Connection::~Connection() = default;

Result<std::unique_ptr<Connection>> open_connection(const std::vector<std::string>& addresses, ConnectOptions options) {
  if (addresses.empty()) return Status(StatusCode::InvalidArgument, "no address of a distributor is given");
  for (const std::string& address : addresses) FJORD_TRY(check_address(address));
  options.client.addresses = addresses;
  const Duration ready_timeout = options.ready_timeout;
  auto connection = std::make_unique<Connection>(std::move(options));
  if (ready_timeout > Duration(0)) FJORD_TRY(SyncClient(connection->client(), ready_timeout).wait_ready());
  return connection;
}

Result<std::unique_ptr<Connection>> open_connection(std::string_view addresses, ConnectOptions options) {
  FJORD_TRY_ASSIGN(std::vector<std::string> parsed, parse_addresses(addresses));
  return open_connection(parsed, std::move(options));
}

}  // namespace fjord
