#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::gateway {

/// Certificate and key of a server, TLS 1.2 and up, with ALPN "h2" and "http/1.1". Threading: any thread.
class TlsContext {
 public:
  /// `certificate` is a PEM file with the chain, the server's certificate first; `key` is a PEM file with its private
  /// key. Errors: InvalidArgument if a file cannot be read or they do not belong together.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& certificate, const std::string& key);
  ~TlsContext();

  /// Returns when the server's certificate ends, in seconds since 1970.
  std::int64_t certificate_end() const;

 private:
  friend class TlsFilter;
  struct Impl;
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// TLS of one connection, without sockets. Threading: one thread at a time. Lifetime: the context outlives it.
class TlsFilter {
 public:
  explicit TlsFilter(TlsContext& context);
  ~TlsFilter();
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;

  /// Decrypts bytes of the client and appends the result. Returns false if they are not TLS, or the handshake failed.
  bool receive(std::string_view bytes, std::string& plain);
  /// Encrypts. Call it only after is_ready() has become true.
  void send(std::string_view plain);
  /// Tells the client that nothing more is sent.
  void send_end();
  /// Appends the bytes for the client.
  void take_output(std::string& out);

  /// Returns true once the handshake is done.
  bool is_ready() const;
  /// Returns true if the client has said that it sends nothing more.
  bool has_ended() const;
  /// Returns true if the client chose HTTP/2.
  bool is_http2() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::gateway
