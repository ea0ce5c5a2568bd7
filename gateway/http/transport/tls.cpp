#include "http/transport/tls.h"

#include <array>
#include <ctime>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <utility>

#include "fjord/common/check.h"

namespace fjord::gateway {
namespace {

constexpr unsigned char kAlpn[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

std::string openssl_error() {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return text;
}

int choose_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                    unsigned in_size, void* /*argument*/) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kAlpn, sizeof(kAlpn), in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

struct TlsContext::Impl {
  Impl() : context(SSL_CTX_new(TLS_server_method())) { FJORD_CHECK(context != nullptr); }
  ~Impl() { SSL_CTX_free(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  SSL_CTX* const context;
};

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::unique_ptr<TlsContext>> TlsContext::load(const std::string& certificate, const std::string& key) {
  auto impl = std::make_unique<Impl>();
  SSL_CTX* const context = impl->context;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return Status(StatusCode::InvalidArgument, fmt::format("certificate {}: {}", certificate, openssl_error()));
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Status(StatusCode::InvalidArgument, fmt::format("key {}: {}", key, openssl_error()));
  }
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(impl)));
}

std::int64_t TlsContext::certificate_end() const {
  std::tm end{};
  FJORD_CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(impl_->context)), &end) == 1);
  return ::timegm(&end);
}

struct TlsFilter::Impl {
  explicit Impl(SSL_CTX* context) : ssl(SSL_new(context)), input(BIO_new(BIO_s_mem())), output(BIO_new(BIO_s_mem())) {
    FJORD_CHECK(ssl != nullptr && input != nullptr && output != nullptr);
    SSL_set_bio(ssl, input, output);
    SSL_set_accept_state(ssl);
  }
  ~Impl() { SSL_free(ssl); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  SSL* const ssl;
  BIO* const input;   ///< Owned by ssl.
  BIO* const output;  ///< Owned by ssl.
};

TlsFilter::TlsFilter(TlsContext& context) : impl_(std::make_unique<Impl>(context.impl_->context)) {}
TlsFilter::~TlsFilter() = default;

bool TlsFilter::receive(std::string_view bytes, std::string& plain) {
  ERR_clear_error();
  FJORD_CHECK(BIO_write(impl_->input, bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()));
  std::array<char, 16 << 10> part;
  while (true) {
    const int size = SSL_read(impl_->ssl, part.data(), static_cast<int>(part.size()));
    if (size > 0) {
      plain.append(part.data(), static_cast<std::size_t>(size));
      continue;
    }
    const int error = SSL_get_error(impl_->ssl, size);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_ZERO_RETURN;
  }
}

void TlsFilter::send(std::string_view plain) {
  if (plain.empty()) return;
  ERR_clear_error();
  // The output grows as needed, so a write is never partial. After an error of the connection nothing is sent.
  SSL_write(impl_->ssl, plain.data(), static_cast<int>(plain.size()));
}

void TlsFilter::send_end() {
  ERR_clear_error();
  if (is_ready()) SSL_shutdown(impl_->ssl);
}

void TlsFilter::take_output(std::string& out) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(impl_->output, &data);
  if (size <= 0) return;
  out.append(data, static_cast<std::size_t>(size));
  BIO_reset(impl_->output);
}

bool TlsFilter::is_ready() const { return SSL_is_init_finished(impl_->ssl) == 1; }

bool TlsFilter::has_ended() const { return (SSL_get_shutdown(impl_->ssl) & SSL_RECEIVED_SHUTDOWN) != 0; }

bool TlsFilter::is_http2() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(impl_->ssl, &name, &size);
  return size == 2 && name[0] == 'h' && name[1] == '2';
}

}  // namespace fjord::gateway
