#include "operator.h"

namespace fjord::sim {

void Operator::change_nodes(rpc::NodeAction action, const std::string& node, NodesDone done) {
  rpc::ChangeNodes request;
  request.action = action;
  request.nodes = {node};
  change_nodes(std::move(request), std::move(done));
}

void Operator::change_nodes(rpc::ChangeNodes request, NodesDone done) {
  request.who = "simulation";
  add({std::move(request), std::move(done), {}});
}

void Operator::change_config(const std::string& setting, ConfigDone done) {
  rpc::ChangeConfig request;
  request.who = "simulation";
  (setting.find('=') == std::string::npos ? request.unset : request.set) = {setting};
  add({std::move(request), {}, std::move(done)});
}

void Operator::add(Job job) {
  jobs_.push_back(std::move(job));
  if (jobs_.size() == 1) send();
}

void Operator::send() {
  if (jobs_.empty()) return;
  if (std::holds_alternative<rpc::ChangeNodes>(jobs_.front().request)) {
    look<rpc::GetStatus>([this](const rpc::GetStatusReply& seen) {
      auto request = std::get<rpc::ChangeNodes>(jobs_.front().request);
      request.if_unchanged = true;
      request.unchanged_since_us = seen.changed_unix_us;
      send(request, &Job::nodes_done);
    });
  } else {
    look<rpc::GetConfig>([this](const rpc::GetConfigReply& seen) {
      auto request = std::get<rpc::ChangeConfig>(jobs_.front().request);
      request.if_version = true;
      request.version = seen.config_version;
      send(request, &Job::config_done);
    });
  }
}

template <typename Q, typename F>
void Operator::look(F then) {
  cluster_.admin().call_any(Q{}, seconds(5), [this, then](const Result<typename Q::Reply>& seen) {
    if (seen && seen->status) {
      then(*seen);
    } else {
      send_later();
    }
  });
}

void Operator::send_later() {
  cluster_.scheduler().outside().post_after(milliseconds(100), [this] { send(); });
}

template <typename R, typename F>
void Operator::send(const R& request, F Job::*done) {
  cluster_.admin().call_any(R(request), seconds(5), [this, done](Result<typename R::Reply> reply) {
    const StatusCode code = reply ? reply->status.code() : reply.error().code();
    // Such an error is not a decision of the controller, which could not store the change.
    const bool store_is_away = reply && reply->status.message().find("the store") != std::string::npos;
    const bool decided =
        reply && !store_is_away &&
        (code == StatusCode::Ok || code == StatusCode::InvalidArgument || code == StatusCode::NotFound ||
         code == StatusCode::AlreadyExists || code == StatusCode::Unavailable);
    if (!decided) {
      send_later();
      return;
    }
    cluster_.scheduler().outside().post_after(Duration(0), [this, done, reply = std::move(*reply)] {
      const F tell = std::move(jobs_.front().*done);
      if (tell) tell(reply);  // `tell` may add requests, which are sent after this one.
      jobs_.pop_front();
      send();
    });
  });
}

}  // namespace fjord::sim
