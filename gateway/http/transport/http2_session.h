#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/transport/session.h"

struct nghttp2_session;

namespace fjord::gateway {

/// Bounds how many frames of some kind a client may send.
class FrameBudget {
 public:
  struct Limits {
    double frames_max = 0;  ///< Most frames at once.
    double per_second = 0;
  };
  explicit FrameBudget(Limits limits) : limits_(limits), left_(limits.frames_max) {}
  /// Takes one frame of the budget. Returns false if none was left.
  bool take();
  void add(double frames);

 private:
  const Limits limits_;
  double left_;
  HttpClock::time_point at_ = HttpClock::now();
};

/// HTTP/2. Knows nghttp2, which does the frames, the compression of headers and the windows.
///
/// A peer is cut off with GOAWAY if it sends many frames that bring no request: resets, settings, pings, empty data.
class Http2Session final : public Session {
 public:
  Http2Session(HttpServer& server, SessionHost& host);
  ~Http2Session() override;

  void receive(std::string_view bytes) override;
  void receive_end() override;
  void produce(std::string& out, std::size_t bytes_max) override;
  void flushed() override;
  void answer_changed(Exchange& exchange) override;
  bool wants_input() const override { return !has_ended_ && !is_broken_; }
  bool is_over() const override;
  HttpClock::time_point deadline() const override;
  void on_time(HttpClock::time_point now) override;
  void drain() override;
  void abandon() override;

 private:
  struct Stream;
  struct Callbacks;

  Stream* find(std::int32_t id);
  int begin_headers(std::int32_t id);
  int add_header(std::int32_t id, std::string_view name, std::string_view value);
  int add_body(std::int32_t id, std::string_view bytes);
  void end_request(std::int32_t id);
  void end_stream(std::int32_t id);
  /// Counts a frame that brings no request.
  void count_idle_frame();
  void refuse(Stream& stream, unsigned status, std::string_view message);
  void start(Stream& stream);
  void submit(Stream& stream);
  /// Appends a frame of data to what is produced, with room for its header, and returns the bytes of the data.
  std::int64_t read_body(Stream& stream, std::size_t bytes_max, std::uint32_t* flags);
  int end_frame(const std::uint8_t* header, std::size_t bytes);
  /// Ends the connection after a GOAWAY.
  void break_off(std::uint32_t error, std::string_view reason);
  void check_stream(Stream& stream, HttpClock::time_point now, std::vector<std::int32_t>& slow);

  HttpServer& server_;
  SessionHost& host_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Exchange>> finished_;  ///< Exchanges whose last bytes are produced and not flushed.
  std::vector<std::weak_ptr<Exchange>> left_;        ///< Exchanges that the client reset while their handlers work.
  std::string* produced_ = nullptr;                  ///< Set while produce() runs.
  std::size_t produced_max_ = 0;
  HttpClock::time_point idle_since_ = HttpClock::now();  ///< While there are no streams.
  HttpClock::time_point next_check_ = HttpClock::time_point::max();
  FrameBudget idle_frames_;
  FrameBudget resets_;
  bool has_ended_ = false;
  bool is_broken_ = false;
  bool is_draining_ = false;
};

}  // namespace fjord::gateway
