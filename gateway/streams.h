#pragma once

#include <cstddef>
#include <deque>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "call.h"
#include "context.h"
#include "fjord/common/metrics.h"
#include "fjord/library/pending.h"

/// Visits and subscriptions: a client opens one, asks for chunks, and closes it.
namespace fjord::gateway {

/// Limits of one chunk.
struct ChunkLimits {
  std::size_t entries = 0;
  std::size_t bytes = 0;
};

/// One open visit or subscription. `Source` has
///
///     using Reply;                                   // with status and cursor
///     void take(const ChunkLimits&, Reply&);         // on a worker: adds what has arrived, waits for nothing
///     static bool has_news(const Reply&);            // true: the reply is to be sent now
///     static bool is_end(const Reply&);              // true: nothing comes after this reply
///     static Reply nothing();                        // an empty chunk, without a cursor
///     Pending<Status> ready();                       // ends when there may be more to take
///
/// A call takes what has arrived. If there is nothing, it waits without a thread until ready() ends, or until its
/// deadline; the answer is then an empty chunk. What arrives for a call that has been answered is kept for the next
/// one.
///
/// Threading: the executor of the context.
template <typename Source>
class Stream : public std::enable_shared_from_this<Stream<Source>> {
 public:
  using Reply = typename Source::Reply;

  Stream(Context& context, std::unique_ptr<Source> source)
      : context_(context), source_(std::move(source)), used_(context.clock.now()) {}

  bool has_call() const { return call_.has_value(); }
  MonotonicTime used() const { return used_; }

  /// Answers with the next chunk; `done` is called before the last chunk. Only one call may wait at a time.
  void next(const ChunkLimits& limits, Duration timeout, Call<Reply> call, std::function<void(const Reply&)> done) {
    call_ = std::move(call);
    done_ = std::move(done);
    limits_ = limits;
    context_.inbox->post_after(timeout, [weak = this->weak_from_this(), number = ++calls_] {
      const auto self = weak.lock();
      if (self != nullptr && self->call_ && self->calls_ == number) self->answer(self->empty());
    });
    if (kept_) {
      answer(*std::exchange(kept_, std::nullopt));
    } else if (activity_ == Activity::Idle) {
      take();
    }
  }

  /// Ends the stream. A call that waits fails with `why`.
  void end(const Status& why) {
    if (call_) std::exchange(call_, std::nullopt)->end(why);
    if (activity_ == Activity::Ended) return;
    const bool is_taking = std::exchange(activity_, Activity::Ended) == Activity::Taking;
    if (!is_taking) drop();
  }

 private:
  enum class Activity {
    Idle,
    Taking,   ///< A worker uses the source.
    Waiting,  ///< The source's ready() has not ended.
    Ended,
  };

  void take() {
    activity_ = Activity::Taking;
    context_.workers.run([self = this->shared_from_this(), source = source_.get(), limits = limits_]() mutable {
      auto reply = std::make_shared<Reply>();
      source->take(limits, *reply);
      Inbox& inbox = *self->context_.inbox;
      inbox.post([self = std::move(self), reply] { self->on_taken(std::move(*reply)); });
    });
  }

  void on_taken(Reply reply) {
    if (activity_ == Activity::Ended) return drop();
    cursor_ = reply.cursor;
    if (!Source::has_news(reply)) {
      wait();
    } else {
      activity_ = Activity::Idle;
      if (call_) {
        answer(std::move(reply));
      } else {
        kept_ = std::move(reply);
      }
    }
  }

  void wait() {
    activity_ = Activity::Waiting;
    source_->ready().then([weak = this->weak_from_this(), inbox = context_.inbox](const Status&) {
      inbox->post([weak] {
        const auto self = weak.lock();
        if (self == nullptr || self->activity_ != Activity::Waiting) return;
        self->activity_ = Activity::Idle;
        if (self->call_) self->take();
      });
    });
  }

  Reply empty() const {
    Reply reply = Source::nothing();
    reply.cursor = cursor_;
    return reply;
  }

  void answer(Reply reply) {
    const Call<Reply> call = *std::exchange(call_, std::nullopt);
    used_ = context_.clock.now();
    if (Source::is_end(reply)) std::exchange(done_, {})(reply);
    if (reply.__isset.status && reply.status.node.empty()) reply.status.node = context_.node;
    call.answer(std::move(reply));
  }

  /// Destroys the source, which waits for the client library's thread.
  void drop() {
    if (source_ == nullptr) return;
    context_.workers.run([source = std::shared_ptr<Source>(std::move(source_))]() mutable { source.reset(); });
  }

  Context& context_;
  std::unique_ptr<Source> source_;
  Activity activity_ = Activity::Idle;
  std::optional<Call<Reply>> call_;
  std::uint64_t calls_ = 0;  ///< Number of calls so far, which identifies the last one.
  std::function<void(const Reply&)> done_;
  ChunkLimits limits_;
  std::optional<Reply> kept_;
  std::string cursor_;
  MonotonicTime used_;
};

/// The open streams of one kind. Threading: the executor of the context.
template <typename Source>
class Streams {
 public:
  using Reply = typename Source::Reply;

  /// `kind` is "visit".
  Streams(Context& context, MetricRegistry& metrics, std::string kind, const Tunable& open_max)
      : context_(context),
        kind_(std::move(kind)),
        open_max_(open_max),
        open_gauge_(metrics.gauge("fjord_gateway_streams", "Open visits and subscriptions of Thrift clients.",
                                  {{"kind", kind_}})),
        idle_ended_(metrics.counter("fjord_gateway_streams_idle_ended_total",
                                    "Visits and subscriptions of Thrift clients that ended because nothing was asked.",
                                    {{"kind", kind_}})) {}

  /// Makes a source on a worker with `make()` and answers with its name. `make` returns a Result.
  template <typename OpenReply, typename Make>
  void open(Call<OpenReply> call, Duration timeout, Make make) {
    if (static_cast<std::int64_t>(streams_.size() + opening_) >= open_max_.value()) {
      return call.end(
          over_limit(StatusCode::Busy, fmt::format("{} {}s are open", streams_.size() + opening_, kind_), open_max_));
    }
    ++opening_;
    fail_after(timeout, call);
    context_.workers.run([this, call, make = std::move(make)]() mutable {
      auto made = std::make_shared<Result<std::unique_ptr<Source>>>(make());
      context_.inbox->post([this, call, made] { on_open(call, std::move(*made)); });
    });
  }

  void next(const std::string& name, std::int64_t entries_max, std::int64_t bytes_max, Duration timeout,
            Call<Reply> call) {
    const auto at = streams_.find(name);
    if (at == streams_.end()) return call.end(gone(name));
    const std::shared_ptr<Stream<Source>> stream = at->second;  // A copy, as an end removes it from the table.
    if (stream->has_call()) {
      return call.end({StatusCode::Busy, fmt::format("another call waits on the {} {}", kind_, name)});
    }
    constexpr std::int64_t kEntriesMax = 100'000;
    const std::int64_t bytes = context_.chunk_bytes_max.value();
    const ChunkLimits limits{
        static_cast<std::size_t>(entries_max <= 0 ? kEntriesMax : std::min(entries_max, kEntriesMax)),
        static_cast<std::size_t>(bytes_max <= 0 ? bytes : std::min(bytes_max, bytes))};
    stream->next(limits, timeout, std::move(call), [this, name](const Reply& last) {
      const Status status = last.__isset.status && last.status.code != 0
                                ? Status(static_cast<StatusCode>(last.status.code), last.status.message)
                                : Status::ok();
      end(name, status ? "it is over" : "it ended with " + status.to_string());
    });
  }

  /// Errors: NotFound.
  Status close(const std::string& name) {
    if (streams_.find(name) == streams_.end()) return gone(name);
    end(name, "it was closed");
    return Status::ok();
  }

  void end_idle() {
    const Duration limit = milliseconds(context_.idle_timeout.value());
    std::vector<std::string> idle;
    for (const auto& [name, stream] : streams_) {
      if (!stream->has_call() && context_.clock.now() - stream->used() > limit) idle.push_back(name);
    }
    for (const std::string& name : idle) {
      idle_ended_.add();
      end(name, fmt::format("nothing was asked for {} ms ({}); open it again with the last cursor",
                            limit.count() / 1000, context_.idle_timeout.declaration().name));
    }
  }

  /// Ends all streams. Calls that wait fail with `why`.
  void end_all(const Status& why) {
    for (const auto& [name, stream] : streams_) stream->end(why);
    streams_.clear();
    open_gauge_.set(0);
  }

 private:
  template <typename OpenReply>
  void on_open(const Call<OpenReply>& call, Result<std::unique_ptr<Source>> made) {
    --opening_;
    if (!made) return call.end(made.error());
    const auto stream = std::make_shared<Stream<Source>>(context_, std::move(*made));
    if (call.is_answered()) return stream->end(Status::ok());  // The call's deadline has passed.
    std::string name = fmt::format("{}-{:016x}", context_.node, context_.random.next());
    streams_.emplace(name, stream);
    open_gauge_.set(static_cast<double>(streams_.size()));
    OpenReply reply;
    Source::set_name(reply, std::move(name));
    call.answer(std::move(reply));
  }

  template <typename OpenReply>
  void fail_after(Duration timeout, const Call<OpenReply>& call) {
    context_.inbox->post_after(timeout, [call, kind = kind_] {
      call.end({StatusCode::Timeout, fmt::format("the {} could not be opened within timeout_ms", kind)});
    });
  }

  void end(const std::string& name, std::string why) {
    const auto at = streams_.find(name);
    if (at == streams_.end()) return;
    at->second->end(Status(StatusCode::Cancelled, fmt::format("the {} {} has ended: {}", kind_, name, why)));
    streams_.erase(at);
    open_gauge_.set(static_cast<double>(streams_.size()));
    ended_.emplace_back(name, std::move(why));
    constexpr std::size_t kEndedMax = 1000;
    if (ended_.size() > kEndedMax) ended_.pop_front();
  }

  Status gone(const std::string& name) const {
    for (const auto& [ended, why] : ended_) {
      if (ended == name) return {StatusCode::NotFound, fmt::format("the {} {} has ended: {}", kind_, name, why)};
    }
    if (const std::size_t end = name.rfind('-'); end != std::string::npos && name.substr(0, end) != context_.node) {
      return {StatusCode::NotFound,
              fmt::format("the {} {} was opened at {}, not at {}: ask there, or open it again with "
                          "the last cursor",
                          kind_, name, name.substr(0, end), context_.node)};
    }
    return {
        StatusCode::NotFound,
        fmt::format("there is no {} {} here, perhaps because the process was restarted: open it again with the last "
                    "cursor",
                    kind_, name)};
  }

  Context& context_;
  const std::string kind_;
  const Tunable& open_max_;
  Gauge& open_gauge_;
  Counter& idle_ended_;
  std::map<std::string, std::shared_ptr<Stream<Source>>> streams_;
  std::size_t opening_ = 0;
  std::deque<std::pair<std::string, std::string>> ended_;  ///< Names of the streams that ended last, with the reasons.
};

}  // namespace fjord::gateway
