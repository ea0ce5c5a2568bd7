#include "fjord/monitoring/metric_scraper.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>

namespace fjord {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

/// The request for one page. Everything runs on the thread of scrape().
class Request : public std::enable_shared_from_this<Request> {
 public:
  Request(asio::io_context& context, std::string address, const ScrapeOptions& options)
      : resolver_(context), stream_(context), deadline_(context), address_(std::move(address)), options_(options) {
    parser_.body_limit(options.page_bytes_max);
    parser_.header_limit(16 * 1024);
  }

  void start() {
    const std::size_t colon = address_.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == address_.size()) {
      return end(Status(StatusCode::InvalidArgument, "not host:port"));
    }
    const std::string host = address_.substr(0, colon);
    request_ = {http::verb::get, "/metrics", 11};
    request_.set(http::field::host, address_);
    request_.set(http::field::connection, "close");
    deadline_.expires_after(std::chrono::microseconds(options_.timeout.count()));
    deadline_.async_wait([self = shared_from_this()](const beast::error_code& error) {
      if (!error) self->end(Status(StatusCode::Timeout, "no metrics within the time"));
    });
    resolver_.async_resolve(host, address_.substr(colon + 1),
                            [self = shared_from_this()](const beast::error_code& error, const auto& found) {
                              if (error) return self->failed(StatusCode::NotReady, error);
                              self->connect(found);
                            });
  }

  Result<MetricPage> take() {
    if (!result_) return Status(StatusCode::IoError, address_ + ": no answer");
    return std::move(*result_);
  }

 private:
  void connect(const tcp::resolver::results_type& endpoints) {
    stream_.async_connect(endpoints, [self = shared_from_this()](const beast::error_code& error, const auto&) {
      if (error) return self->failed(StatusCode::NotReady, error);
      self->exchange();
    });
  }

  void exchange() {
    http::async_write(stream_, request_, [self = shared_from_this()](const beast::error_code& error, std::size_t) {
      if (error) return self->failed(StatusCode::IoError, error);
      http::async_read(self->stream_, self->buffer_, self->parser_,
                       [self](const beast::error_code& failure, std::size_t) { self->on_read(failure); });
    });
  }

  void on_read(const beast::error_code& error) {
    if (error == http::error::body_limit) return end(Status(StatusCode::TooLarge, "the page is too large"));
    if (error.category() == http::make_error_code(http::error::bad_version).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message) {
      return failed(StatusCode::Corruption, error);
    }
    if (error) return failed(StatusCode::IoError, error);
    const auto& response = parser_.get();
    if (response.result() != http::status::ok) {
      return end(Status(StatusCode::IoError, "answers with HTTP status " + std::to_string(response.result_int())));
    }
    end(MetricPage::parse(response.body()));
  }

  void failed(StatusCode code, const beast::error_code& error) { end(Status(code, error.message())); }

  void end(Result<MetricPage> result) {
    if (result_) return;
    result_ = result ? std::move(result) : Result<MetricPage>(result.error().with_context(address_));
    deadline_.cancel();
    resolver_.cancel();
    stream_.close();
  }

  tcp::resolver resolver_;
  beast::tcp_stream stream_;
  asio::steady_timer deadline_;
  const std::string address_;
  const ScrapeOptions& options_;
  http::request<http::empty_body> request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::optional<Result<MetricPage>> result_;
};

}  // namespace

std::vector<Result<MetricPage>> scrape(const std::vector<std::string>& addresses, const ScrapeOptions& options) {
  asio::io_context context{1};
  std::vector<std::shared_ptr<Request>> requests;
  for (const std::string& address : addresses) {
    requests.push_back(std::make_shared<Request>(context, address, options));
    requests.back()->start();
  }
  context.run();
  std::vector<Result<MetricPage>> results;
  for (const auto& request : requests) results.push_back(request->take());
  return results;
}

}  // namespace fjord
