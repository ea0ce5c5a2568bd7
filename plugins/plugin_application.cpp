#include "plugin_application.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "plugin_process.h"

namespace fjord::plugins {
namespace {

using mapreduce::ApplicationParameters;
using mapreduce::BatchApplication;
using mapreduce::KeyedValues;
using mapreduce::MappedDocuments;

/// Approximate size of one message. A single document or key may be larger.
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

/// Passes documents and keys to a process in batches. If a process is lost, a new one continues, because only the
/// interrupted call depends on the old one. The documents of that batch are then sent one by one, so only the document
/// that causes the loss fails.
class PluginApplication final : public BatchApplication {
 public:
  PluginApplication(std::shared_ptr<const PluginContext> shared, std::string library, std::string name,
                    std::string version)
      : shared_(std::move(shared)), library_(std::move(library)) {
    create_.call = Call::CreateApplication;
    create_.name = std::move(name);
    create_.version = std::move(version);
  }
  ~PluginApplication() override {
    if (process_ != nullptr) idle_->give({std::move(process_), needs_body_});
  }
  PluginApplication(const PluginApplication&) = delete;
  PluginApplication& operator=(const PluginApplication&) = delete;

  Status configure(const ApplicationParameters& parameters, const DocumentType& type) override {
    for (const auto& [name, value] : parameters.values()) create_.parameters.push_back({name, value});
    if (parameters.types() == nullptr) return Status(StatusCode::NotReady, "a plugin has to be told all types");
    create_.schemas = parameters.types()->schemas();
    create_.document_type = type.name();
    return shared_->options.applications_start_at_once ? start() : Status::ok();
  }
  bool needs_body() const override { return needs_body_; }

  Result<MappedDocuments> map(std::span<const DocumentView> documents,
                              const std::function<bool()>& cancelled) override {
    return map(Call::Map, documents, cancelled);
  }
  Result<MappedDocuments> map_apart(std::span<const DocumentView> documents,
                                    const std::function<bool()>& cancelled) override {
    Result<MappedDocuments> mapped = map(Call::MapApart, documents, cancelled);
    if (mapped && mapped->ends.empty()) mapped->ends = {0};  // The document that lost its process has no tuples.
    return mapped;
  }

  Status combine(std::span<const KeyedValues> keys,
                 const std::function<void(std::size_t, std::string_view)>& on_value) override {
    std::vector<std::string_view> values;
    for (std::size_t done = 0; done < keys.size();) {
      FJORD_TRY_ASSIGN(const HostAnswer answer, ask_about(Call::Combine, keys.subspan(done)));
      ByteReader in(answer.result);
      if (in.remaining() == 0) return nonsense();
      for (; in.remaining() > 0; ++done) {
        if (!take_values(in, values) || done == keys.size()) return nonsense();
        for (const std::string_view value : values) on_value(done, value);
      }
    }
    return Status::ok();
  }

  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) override {
    std::vector<std::optional<std::string>> results;
    while (results.size() < keys.size()) {
      FJORD_TRY_ASSIGN(const HostAnswer answer, ask_about(Call::Reduce, keys.subspan(results.size())));
      ByteReader in(answer.result);
      if (in.remaining() == 0) return nonsense();
      while (in.remaining() > 0) {
        std::optional<std::string>& result = results.emplace_back();
        if (in.fixed<std::uint8_t>() != 0) result = in.string();
      }
      if (!in.ok() || results.size() > keys.size()) return nonsense();
    }
    return results;
  }

 private:
  static bool never() { return false; }
  static bool is_of_process(const Status& status) { return status.code() == StatusCode::InvalidArgument; }

  /// Asks about as many of the keys as one answer covers: at least one, from the front.
  Result<HostAnswer> ask_about(Call call, std::span<const KeyedValues> keys) {
    FJORD_TRY(start());
    HostRequest request;
    request.call = call;
    for (const KeyedValues& key : keys) {
      put_string(request.batch, key.key);
      put_values(request.batch, key.values);
    }
    return ask(request, never);
  }

  /// Starts a process if there is none. Errors: IoError; NotReady; those of the library's factory.
  Status start() {
    if (process_ != nullptr) return Status::ok();
    if (idle_ == nullptr) idle_ = shared_->idle.of(library_ + encode(create_));
    if (IdleProcesses::Process idle = idle_->take(); idle.process != nullptr) {
      process_ = std::move(idle.process);
      needs_body_ = idle.needs_body;
      return Status::ok();
    }
    FJORD_TRY_ASSIGN(process_, PluginProcess::start(shared_->options, library_));
    shared_->started.add();
    FJORD_TRY_ASSIGN(const HostAnswer answer, ask(create_, never));
    if (answer.result.size() != 1) return nonsense();
    needs_body_ = answer.result[0] != 0;
    return Status::ok();
  }

  /// Sends a request. Any error ends the process.
  Result<HostAnswer> ask(const HostRequest& request, const ChildProcess::IsCancelled& cancelled) {
    Result<HostAnswer> answer =
        process_->call(request, shared_->options.call_timeout, cancelled, [](const HostAnswer&) {});
    if (!answer) {
      process_.reset();
      shared_->say(answer.error());
    }
    return answer;
  }

  Status nonsense() {
    process_.reset();
    return Status(StatusCode::InvalidArgument, "the process of the plugin " + library_ + " sent nonsense");
  }

  Result<MappedDocuments> map(Call call, std::span<const DocumentView> documents,
                              const std::function<bool()>& cancelled) {
    FJORD_TRY(start());
    if (suspects_ == 0) {
      Result<MappedDocuments> mapped = map_batch(call, documents, cancelled);
      if (mapped || !is_of_process(mapped.error()) || last_batch_ == 1) return or_failed(std::move(mapped));
      suspects_ = last_batch_;
      FJORD_TRY(start());
    }
    --suspects_;
    return or_failed(map_batch(call, documents.first(1), cancelled));
  }

  /// Maps as many documents as fit into a message and sets last_batch_ to their number.
  Result<MappedDocuments> map_batch(Call call, std::span<const DocumentView> documents,
                                    const std::function<bool()>& cancelled) {
    HostRequest request;
    request.call = call;
    last_batch_ = 0;
    for (const DocumentView& document : documents) {
      put_string(request.batch, document.header());
      put_string(request.batch, document.body());
      ++last_batch_;
      if (request.batch.size() >= kBatchBytes) break;
    }
    FJORD_TRY_ASSIGN(const HostAnswer answer, ask(request, cancelled ? cancelled : never));
    return decoded(answer.result, call == Call::MapApart);
  }

  Result<MappedDocuments> decoded(std::string_view result, bool apart) {
    ByteReader in(result);
    MappedDocuments mapped;
    mapped.documents = static_cast<std::size_t>(in.varint());
    mapped.tuples = in.varint();
    for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
      const auto document = static_cast<std::size_t>(in.varint());
      const auto code = static_cast<StatusCode>(in.varint());
      std::string message(in.string());
      if (!in.ok() || document >= mapped.documents || code == StatusCode::Ok) return nonsense();
      mapped.failed.push_back({document, Status(code, std::move(message))});
    }
    if (mapped.documents > last_batch_) return nonsense();
    if (apart && !mapped.take_apart(in)) return nonsense();
    if (!apart) mapped.emitted = in.rest();
    ByteReader tuples(mapped.emitted);
    while (tuples.remaining() > 0) tuples.string();
    const bool is_sound = in.ok() && tuples.ok() && mapped.documents > 0;
    if (!is_sound) return nonsense();
    return mapped;
  }

  /// The loss of a process that mapped a single document becomes the failure of that document.
  Result<MappedDocuments> or_failed(Result<MappedDocuments> mapped) const {
    if (mapped || !is_of_process(mapped.error())) return mapped;
    MappedDocuments failed;
    failed.documents = 1;
    failed.failed.push_back({0, mapped.error()});
    return failed;
  }

  std::shared_ptr<const PluginContext> shared_;
  std::string library_;
  HostRequest create_;
  std::shared_ptr<IdleProcesses> idle_;  ///< Null: not started.
  std::unique_ptr<PluginProcess> process_;
  bool needs_body_ = true;
  std::size_t last_batch_ = 0;
  /// Number of next documents that were in a batch in which a process was lost.
  std::size_t suspects_ = 0;
};

}  // namespace

mapreduce::ApplicationInfo plugin_application(std::shared_ptr<const PluginContext> shared, std::string library,
                                              const DescribedApplication& described) {
  return {described.name, described.help, described.parameters,
          [shared = std::move(shared), library = std::move(library), name = described.name,
           version = described.version] { return std::make_unique<PluginApplication>(shared, library, name, version); },
          described.version};
}

}  // namespace fjord::plugins
