#include "application_host.h"

#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/mapreduce/one_result.h"

namespace fjord::plugins {
namespace {

using mapreduce::ApplicationParameters;
using mapreduce::JobFunctions;
using Clock = std::chrono::steady_clock;

/// Time after which a batch is answered with the documents or keys finished by then. So the time limit of a call is a
/// limit for one document or key.
constexpr std::chrono::milliseconds kBatchTime{100};

HostAnswer failed(StatusCode code, std::string message) {
  HostAnswer answer;
  answer.status = Status(code, std::move(message));
  return answer;
}

HostAnswer malformed() { return failed(StatusCode::InvalidArgument, "a batch that is malformed"); }

/// The tuples of a batch. Those of equal keys are combined.
class Tuples {
 public:
  explicit Tuples(JobFunctions& functions) : functions_(functions) {}

  void add(std::string_view key, std::string_view value) {
    const auto [it, is_new] = groups_.try_emplace(std::string(key));
    if (is_new) keys_.push_back(&*it);
    std::vector<std::string>& values = it->second;
    if (!values.empty() && functions_.combine(key, values.back(), value)) return;
    values.emplace_back(value);
  }
  void encode(std::string& out) const {
    for (const auto* group : keys_) {
      for (const std::string& value : group->second) {
        put_string(out, group->first);
        put_string(out, value);
      }
    }
  }

 private:
  using Groups = std::unordered_map<std::string, std::vector<std::string>>;
  JobFunctions& functions_;
  Groups groups_;
  std::vector<const Groups::value_type*> keys_;  ///< Groups in the order in which their keys were first emitted.
};

/// Collects the tuples that map() emits for one document; they are discarded if the document fails.
class DocumentTuples final : public mapreduce::Emitter {
 public:
  void emit(std::string_view key, std::string_view value) override {
    put_string(bytes_, key);
    put_string(bytes_, value);
    ++count_;
  }
  std::uint64_t move_to(Tuples& tuples) {
    ByteReader in(bytes_);
    while (in.remaining() > 0) {
      const std::string_view key = in.string();
      tuples.add(key, in.string());
    }
    return count_;
  }
  std::uint64_t move_to(std::string& tuples) {
    tuples += bytes_;
    return count_;
  }
  void clear() {
    bytes_.clear();
    count_ = 0;
  }

 private:
  std::string bytes_;
  std::uint64_t count_ = 0;
};

/// Turns an exception into the document's status. std::bad_alloc is passed on, because earlier documents may have
/// caused it.
template <typename F>
Status caught(const char* what, F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return Status(StatusCode::InvalidArgument, std::string(what) + " threw an exception: " + thrown.what());
  } catch (...) {
    return Status(StatusCode::InvalidArgument, std::string(what) + " threw something");
  }
}

}  // namespace

HostAnswer ApplicationHost::handle(const HostRequest& request) {
  if (request.call == Call::CreateApplication) return create(request);
  if (functions_ == nullptr) return failed(StatusCode::InvalidArgument, "there is no application yet");
  if (request.call == Call::Map || request.call == Call::MapApart)
    return map(request.batch, request.call == Call::MapApart);
  if (request.call == Call::Combine) return combine(request.batch);
  return reduce(request.batch);
}

HostAnswer ApplicationHost::create(const HostRequest& request) {
  const auto entry = registry_.applications().find(request.name);
  if (entry == registry_.applications().end())
    return failed(StatusCode::InvalidArgument, "no application " + request.name);
  if (entry->second.version != request.version) {
    return failed(StatusCode::InvalidArgument, "the library of the application " + request.name +
                                                   " was replaced by one with version " + entry->second.version +
                                                   "; this node was started with version " + request.version);
  }
  auto types = DocumentTypeRepo::build(request.schemas);
  if (!types) return failed(types.error().code(), types.error().message());
  types_ = std::move(*types);
  const DocumentType* type = types_->find(request.document_type);
  if (type == nullptr) return failed(StatusCode::UnknownType, "there is no document type " + request.document_type);
  ApplicationParameters::Values values;
  for (const rpc::Parameter& parameter : request.parameters) values[parameter.name] = parameter.value;
  parameters_ = std::make_unique<ApplicationParameters>(std::move(values), types_.get());
  context_ = std::make_unique<ApplicationContext>(ApplicationContext{*type, *parameters_});
  auto made = entry->second.factory(*context_);
  if (!made) return failed(made.error().code(), made.error().message());
  if (*made == nullptr) return failed(StatusCode::InvalidArgument, "the factory made no application");
  functions_ = std::move(*made);
  HostAnswer answer;
  answer.result.push_back(functions_->needs_body() ? '\1' : '\0');
  return answer;
}

HostAnswer ApplicationHost::map(std::string_view batch, bool apart) {
  const auto end = Clock::now() + kBatchTime;
  Tuples tuples(*functions_);
  DocumentTuples of_document;
  std::string failures, lengths, apart_tuples;
  std::uint64_t documents = 0, failure_count = 0, tuple_count = 0;
  ByteReader in(batch);
  while (in.remaining() > 0 && (documents == 0 || Clock::now() < end)) {
    const std::string_view header = in.string();
    const std::string_view body = in.string();
    if (!in.ok()) return malformed();
    of_document.clear();
    const auto view = DocumentView::open(*types_, header, body);
    const Status status = view ? caught("map()", [&] { return functions_->map(*view, of_document); }) : view.error();
    const std::size_t before = apart_tuples.size();
    if (status) {
      tuple_count += apart ? of_document.move_to(apart_tuples) : of_document.move_to(tuples);
    } else {
      ++failure_count;
      put_varint(failures, documents);
      put_varint(failures, static_cast<std::uint64_t>(status.code()));
      put_string(failures, status.message());
    }
    put_varint(lengths, apart_tuples.size() - before);
    ++documents;
  }
  HostAnswer answer;
  for (const std::uint64_t number : {documents, tuple_count, failure_count}) put_varint(answer.result, number);
  answer.result += failures;
  if (apart) {
    answer.result += lengths + apart_tuples;
  } else {
    tuples.encode(answer.result);
  }
  return answer;
}

HostAnswer ApplicationHost::combine(std::string_view batch) {
  const auto end = Clock::now() + kBatchTime;
  HostAnswer answer;
  ByteReader in(batch);
  std::vector<std::string_view> values;
  while (in.remaining() > 0 && (answer.result.empty() || Clock::now() < end)) {
    const std::string_view key = in.string();
    if (!take_values(in, values) || values.empty()) return malformed();
    std::vector<std::string> combined;
    for (const std::string_view value : values) {
      if (combined.empty() || !functions_->combine(key, combined.back(), value)) combined.emplace_back(value);
    }
    const std::vector<std::string_view> views(combined.begin(), combined.end());
    put_values(answer.result, views);
  }
  return answer;
}

HostAnswer ApplicationHost::reduce(std::string_view batch) {
  const auto end = Clock::now() + kBatchTime;
  HostAnswer answer;
  ByteReader in(batch);
  std::vector<std::string_view> values;
  while (in.remaining() > 0 && (answer.result.empty() || Clock::now() < end)) {
    const std::string_view key = in.string();
    if (!take_values(in, values)) return malformed();
    mapreduce::OneResult result;
    Status status = caught("reduce()", [&] { return functions_->reduce(key, values, result); });
    if (status && result.count > 1) status = Status(StatusCode::InvalidArgument, "reduce() gave more than one result");
    if (!status) return failed(status.code(), "key \"" + std::string(key.substr(0, 100)) + "\": " + status.message());
    put_fixed(answer.result, static_cast<std::uint8_t>(result.count));
    if (result.count == 1) put_string(answer.result, result.value);
  }
  return answer;
}

}  // namespace fjord::plugins
