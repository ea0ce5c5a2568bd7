#include "fjord/scripting/script_application.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/document/json.h"
#include "script_memory.h"
#include "script_process.h"

namespace fjord::scripting {
namespace {

using mapreduce::ApplicationParameters;
using mapreduce::BatchApplication;
using mapreduce::KeyedValues;
using mapreduce::MappedDocuments;

/// Approximate size of one message. A single document, or the values of one key to reduce, may be larger.
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

bool never() { return false; }

/// Splits the value of a tuple and appends the script's values in it. Errors: Corruption.
Status unpack(std::string_view value, std::vector<std::string_view>& values) {
  ByteReader reader(value);
  while (reader.remaining() > 0) values.push_back(reader.string());
  return reader.ok() ? Status::ok() : Status(StatusCode::Corruption, "a tuple of a script is malformed");
}

Result<std::vector<std::string_view>> unpacked(std::span<const std::string_view> tuples) {
  std::vector<std::string_view> values;
  for (const std::string_view value : tuples) FJORD_TRY(unpack(value, values));
  return values;
}

/// Combines the values of many keys, in as many messages as needed. The values of a key are combined one after the
/// other in their order. An intermediate result is sent again as the first of the remaining values, so the outcome does
/// not depend on where a message ends.
class Combining {
 public:
  using OnValue = std::function<void(std::size_t, std::string_view)>;

  /// `values`: the values of each of `keys`, at least one each.
  Combining(std::span<const KeyedValues> keys, std::vector<std::vector<std::string_view>> values)
      : keys_(keys), values_(std::move(values)) {}

  bool is_over() const { return key_ == keys_.size(); }
  std::string_view key() const { return keys_[key_].key; }

  std::string next_message() {
    std::string message;
    sent_.clear();
    for (std::size_t key = key_; key < keys_.size() && message.size() < kBatchBytes; ++key) {
      std::string some;
      std::size_t count = 0;
      const bool is_begun = key == key_ && so_far_;
      if (is_begun) {
        put_string(some, *so_far_);
        ++count;
      }
      for (std::size_t at = key == key_ ? value_ : 0; at < values_[key].size(); ++at, ++count) {
        if (count >= 2 && message.size() + some.size() >= kBatchBytes) break;
        put_string(some, values_[key][at]);
      }
      put_string(message, keys_[key].key);
      put_varint(message, count);
      message += some;
      sent_.push_back(count);
    }
    return message;
  }

  /// Returns false if `answer` does not fit the last message.
  bool take(std::string_view answer, const OnValue& on_value) {
    ByteReader in(answer);
    for (const std::size_t sent : sent_) {
      const std::uint64_t combined = in.varint();
      const std::string_view value = in.string();
      if (!in.ok() || combined > sent || combined < std::min<std::size_t>(sent, 2)) return false;
      value_ += combined - (so_far_ ? 1 : 0);
      so_far_ = value;
      if (value_ == values_[key_].size()) {
        std::string tuple;
        put_string(tuple, *so_far_);
        on_value(key_, tuple);
        ++key_;
        value_ = 0;
        so_far_.reset();
      } else if (in.remaining() > 0) {
        return false;
      }
      if (in.remaining() == 0) return true;
    }
    return false;
  }

 private:
  std::span<const KeyedValues> keys_;
  std::vector<std::vector<std::string_view>> values_;
  std::size_t key_ = 0;                ///< The key being combined.
  std::size_t value_ = 0;              ///< Index of the first value of that key that is not combined.
  std::optional<std::string> so_far_;  ///< Combined value of the values before value_.
  std::vector<std::size_t> sent_;      ///< Number of values in the last message, for key_ and each later key.
};

/// Passes documents and keys to a process in batches. If a process is lost, the documents of that batch are sent to the
/// next one by one, so only the document that causes the loss fails. The value of a tuple is one or more values of the
/// script, as put_string() writes them; older storage nodes write several.
class ScriptApplication final : public BatchApplication {
 public:
  ScriptApplication(ScriptOptions options, std::shared_ptr<ScriptMemory> memory)
      : options_(std::move(options)), memory_(std::move(memory)) {}

  Status configure(const ApplicationParameters& parameters, const DocumentType&) override {
    ScriptLimits limits;
    FJORD_TRY_ASSIGN(limits.memory_mb, parameters.integer("memory_mb", 1, 16 << 10));
    FJORD_TRY_ASSIGN(limits.call_ms, parameters.integer("timeout_ms", 1, 3'600'000));
    FJORD_TRY_ASSIGN(limits.cpu_seconds, parameters.integer("cpu_seconds", 1, 1'000'000));
    limits.call_ms = std::min<std::int64_t>(limits.call_ms, options_.call_max.count() / 1000);
    FJORD_TRY(memory_->check(limits.memory_mb));
    process_ = std::make_unique<ScriptProcess>(options_.host, memory_, limits, parameters.text("script"));
    return options_.starts_at_once ? process_->start() : Status::ok();
  }
  Status load() override { return process_->start(); }
  bool needs_body() const override { return process_->needs_body(); }

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
    if (!process_->has_combine()) {
      for (std::size_t key = 0; key < keys.size(); ++key) {
        for (const std::string_view value : keys[key].values) on_value(key, value);
      }
      return Status::ok();
    }
    std::vector<std::vector<std::string_view>> values(keys.size());
    for (std::size_t key = 0; key < keys.size(); ++key) {
      FJORD_TRY_ASSIGN(values[key], unpacked(keys[key].values));
      if (values[key].empty()) return {StatusCode::Corruption, "a tuple of a script is empty"};
    }
    for (Combining combining(keys, std::move(values)); !combining.is_over();) {
      FJORD_TRY(process_->start());
      const auto answer = process_->call(Call::Combine, combining.next_message(), never);
      if (!answer) return of_key(answer.error(), combining.key());
      if (!combining.take(*answer, on_value)) return process_->nonsense();
    }
    return Status::ok();
  }

  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) override {
    std::vector<std::optional<std::string>> results;
    while (results.size() < keys.size()) {
      const std::string_view first = keys[results.size()].key;
      if (const Status status = reduce_some(keys.subspan(results.size()), results); !status)
        return of_key(status, first);
    }
    return results;
  }

 private:
  static Status of_key(const Status& status, std::string_view key) {
    return status.with_context("key " + std::string(key.substr(0, 100)));
  }

  /// Appends the results of as many keys as one answer covers: at least one, from the front.
  Status reduce_some(std::span<const KeyedValues> keys, std::vector<std::optional<std::string>>& results) {
    FJORD_TRY(process_->start());
    std::string message;
    std::size_t sent = 0;
    for (; sent < keys.size() && message.size() < kBatchBytes; ++sent) {
      FJORD_TRY_ASSIGN(auto values, unpacked(keys[sent].values));
      // Makes the order independent of how the values were grouped on their way.
      std::sort(values.begin(), values.end());
      put_string(message, keys[sent].key);
      put_varint(message, values.size());
      for (const std::string_view value : values) put_string(message, value);
    }
    FJORD_TRY_ASSIGN(const std::string answer, process_->call(Call::Reduce, message, never));
    ByteReader in(answer);
    std::size_t answered = 0;
    for (; in.remaining() > 0 && answered < sent; ++answered) {
      std::optional<std::string>& result = results.emplace_back();
      if (in.fixed<std::uint8_t>() != 0) result = in.string();
    }
    return in.at_end() && answered > 0 ? Status::ok() : process_->nonsense();
  }

  Result<MappedDocuments> map(Call call, std::span<const DocumentView> documents,
                              const std::function<bool()>& cancelled) {
    FJORD_TRY(process_->start());
    if (suspects_ == 0) {
      Result<MappedDocuments> mapped =
          map_batch(call, documents.first(std::min(documents.size(), documents_max_)), cancelled);
      if (mapped || process_->is_there() || last_batch_ == 1) return or_failed(std::move(mapped));
      if (mapped.error().code() == StatusCode::Cancelled) return mapped;
      suspects_ = last_batch_;
      FJORD_TRY(process_->start());
    }
    --suspects_;
    return or_failed(map_batch(call, documents.first(1), cancelled));
  }

  /// Maps as many documents as fit into a message and sets last_batch_ to their number. Errors: those of ChildProcess,
  /// which end the process.
  Result<MappedDocuments> map_batch(Call call, std::span<const DocumentView> documents,
                                    const std::function<bool()>& cancelled) {
    std::string message;
    last_batch_ = 0;
    for (const DocumentView& document : documents) {
      if (message.size() >= kBatchBytes) break;
      const auto fields = to_json_fields(document);
      if (!fields && last_batch_ == 0) return blamed(fields.error());
      if (!fields) break;
      put_string(message, document.id());
      put_string(message, *fields);
      ++last_batch_;
    }
    const auto answer = process_->call(call, message, cancelled ? cancelled : never);
    if (!answer) return process_->is_there() ? process_->nonsense() : answer.error();
    FJORD_TRY_ASSIGN(MappedDocuments mapped, decoded(*answer, call == Call::MapApart));
    // Documents that a slow script does not reach are sent again, so the next batch is limited to the number just done.
    const bool has_done_all = mapped.documents == last_batch_;
    documents_max_ = has_done_all ? std::max(documents_max_, 2 * last_batch_) : mapped.documents;
    return mapped;
  }

  Result<MappedDocuments> decoded(std::string_view answer, bool apart) {
    ByteReader in(answer);
    MappedDocuments mapped;
    mapped.documents = static_cast<std::size_t>(in.varint());
    if (mapped.documents == 0 || mapped.documents > last_batch_) return process_->nonsense();
    for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
      const auto document = static_cast<std::size_t>(in.varint());
      const std::string_view why = in.string();
      const bool rises = mapped.failed.empty() || mapped.failed.back().document < document;
      if (!in.ok() || document >= mapped.documents || !rises) return process_->nonsense();
      const std::string from = why.starts_with("script:") ? "" : "script: ";
      mapped.failed.push_back({document, Status(StatusCode::InvalidArgument, from + std::string(why))});
    }
    if (!apart) {
      mapped.emitted = in.rest();
    } else if (!mapped.take_apart(in)) {
      return process_->nonsense();
    }
    ByteReader tuples(mapped.emitted);
    for (; tuples.remaining() > 0; ++mapped.tuples) {
      tuples.string();  // the key
      tuples.string();
    }
    if (!in.ok() || !tuples.ok()) return process_->nonsense();
    return mapped;
  }

  /// The loss of a process that mapped a single document becomes the failure of that document.
  static Result<MappedDocuments> or_failed(Result<MappedDocuments> mapped) {
    if (mapped || mapped.error().code() != StatusCode::InvalidArgument) return mapped;
    return blamed(mapped.error());
  }
  static MappedDocuments blamed(const Status& why) {
    MappedDocuments failed;
    failed.documents = 1;
    failed.failed.push_back({0, why});
    return failed;
  }

  ScriptOptions options_;
  std::shared_ptr<ScriptMemory> memory_;
  std::unique_ptr<ScriptProcess> process_;
  std::size_t documents_max_ =
      std::numeric_limits<std::size_t>::max() / 2;  ///< Maximum number of documents in a call of map.
  std::size_t last_batch_ = 0;
  std::size_t suspects_ = 0;  ///< Documents still to be mapped one by one: one of them ended the process.
};

}  // namespace

void add_script_application(mapreduce::ApplicationRegistry& registry, const ScriptOptions& options) {
  registry.add(
      {"script",
       "Runs a Lua program of yours: map(doc, emit), reduce(key, values), and combine(key, a, b) if it has one. "
       "One result a key: what reduce returns, as JSON.",
       {{"script", "The program.", std::nullopt},
        {"memory_mb", "Memory of the program, in each task.", "64"},
        {"timeout_ms", "How long one call of a function may take.", "1000"},
        {"cpu_seconds", "CPU time of each task.", "3600"}},
       [options, memory = std::make_shared<ScriptMemory>(options.memory_bytes)] {
         return std::make_unique<ScriptApplication>(options, memory);
       },
       "",
       true});
}

}  // namespace fjord::scripting
