#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/transport/body_reader.h"
#include "http/transport/session.h"

namespace fjord::gateway {

/// HTTP/1.1 and 1.0: one request at a time; further ones wait in the input. Knows Boost.Beast, which parses headers.
class Http1Session final : public Session {
 public:
  Http1Session(HttpServer& server, SessionHost& host);
  ~Http1Session() override;

  /// Sends an answer to no request, and ends the connection.
  void refuse_all(unsigned status, std::string_view message);

  void receive(std::string_view bytes) override;
  void receive_end() override;
  void produce(std::string& out, std::size_t bytes_max) override;
  void flushed() override;
  void answer_changed(Exchange& /*exchange*/) override {}
  bool wants_input() const override;
  bool is_over() const override { return step_ == Step::Over; }
  HttpClock::time_point deadline() const override;
  void on_time(HttpClock::time_point now) override;
  void drain() override;
  void abandon() override;

 private:
  enum class Step {
    Idle,      ///< No byte of a request has arrived.
    Head,      ///< A header is arriving.
    Body,      ///< A body is arriving.
    Answer,    ///< The handler has the request.
    Answered,  ///< All of the answer was produced.
    Over,
  };

  void parse();
  /// parse_head() and parse_body() return false if nothing more can be done with the input.
  bool parse_head();
  /// Returns false, with an answer, if the header is malformed or too large so far. `head_size`: its bytes so far.
  bool check_head(std::size_t head_size);
  bool parse_body();
  void begin_body();
  Status read_head();
  Status read_length(std::size_t lengths, std::size_t codings);
  void refuse(unsigned status, std::string_view message);
  void start_exchange();
  void write_head(std::string& out) const;
  void write_body(std::string& out, std::size_t bytes_max);

  HttpServer& server_;
  SessionHost& host_;
  Step step_ = Step::Idle;
  HttpClock::time_point step_begun_ = HttpClock::now();
  std::string input_;           ///< Bytes that have arrived and are not parsed.
  std::size_t checked_ = 0;     ///< Bytes of input_ that were searched for the end of the header.
  std::size_t lines_ = 0;       ///< Line ends in these bytes.
  std::size_t wire_bytes_ = 0;  ///< Bytes of the body as it arrives, with the lengths of chunks.
  BodyReader body_ = BodyReader::of_length(0);
  std::optional<RequestInProgress> progress_;
  HttpRequest request_;
  std::unique_ptr<HeldBytes> held_;
  std::shared_ptr<Exchange> exchange_;
  bool keep_alive_ = true;
  bool is_http10_ = false;
  bool is_chunked_ = false;  ///< The answer is sent in chunks.
  bool has_written_head_ = false;
  bool has_ended_ = false;  ///< True if the client sends nothing more.
  bool goes_on_ = false;    ///< True if "100 Continue" has to be sent.
  bool is_draining_ = false;
};

}  // namespace fjord::gateway
