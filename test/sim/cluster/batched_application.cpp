#include "batched_application.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/random.h"

namespace fjord::sim {
namespace {

using mapreduce::Application;
using mapreduce::BatchFunctions;
using mapreduce::KeyedValues;
using mapreduce::MappedDocuments;

constexpr const char* kVersion = "7";

class Emitted final : public mapreduce::Emitter {
 public:
  void emit(std::string_view key, std::string_view value) override { tuples.emplace_back(key, value); }
  std::vector<std::pair<std::string, std::string>> tuples;
};

class OneResult final : public mapreduce::ResultEmitter {
 public:
  void emit(std::string json) override { result = std::move(json); }
  std::optional<std::string> result;
};

class Batched final : public Application, private BatchFunctions {
 public:
  Batched(std::unique_ptr<Application> functions, Random random) : functions_(std::move(functions)), random_(random) {}

  Status configure(const mapreduce::ApplicationParameters& parameters, const DocumentType& type) override {
    return functions_->configure(parameters, type);
  }
  bool needs_body() const override { return functions_->needs_body(); }
  BatchFunctions* batches() override { return this; }
  Status map(const DocumentView& document, mapreduce::Emitter& emitter) override {
    return functions_->map(document, emitter);
  }
  Status reduce(std::string_view key, std::span<const std::string_view> values,
                mapreduce::ResultEmitter& result) override {
    return functions_->reduce(key, values, result);
  }

  Result<MappedDocuments> map(std::span<const DocumentView> documents, const std::function<bool()>&) override {
    MappedDocuments mapped;
    mapped.documents = std::min<std::size_t>(documents.size(), 1 + random_.below(9));
    const bool combines = random_.chance(0.5);
    std::map<std::string, std::vector<std::string>> groups;
    for (std::size_t i = 0; i < mapped.documents; ++i) {
      Emitted emitted;
      if (Status status = functions_->map(documents[i], emitted); !status) {
        mapped.failed.push_back({i, std::move(status)});
        continue;
      }
      mapped.tuples += emitted.tuples.size();
      for (const auto& [key, value] : emitted.tuples) {
        std::vector<std::string>& values = groups[key];
        if (values.empty() || !combines || !functions_->combine(key, values.back(), value)) values.push_back(value);
      }
    }
    for (const auto& [key, values] : groups) {
      for (const std::string& value : values) {
        put_string(mapped.emitted, key);
        put_string(mapped.emitted, value);
      }
    }
    return mapped;
  }
  Result<MappedDocuments> map_apart(std::span<const DocumentView> documents, const std::function<bool()>&) override {
    MappedDocuments mapped;
    mapped.documents = std::min<std::size_t>(documents.size(), 1 + random_.below(9));
    for (std::size_t i = 0; i < mapped.documents; ++i) {
      Emitted emitted;
      if (Status status = functions_->map(documents[i], emitted); !status) {
        mapped.failed.push_back({i, std::move(status)});
      } else {
        mapped.tuples += emitted.tuples.size();
        for (const auto& [key, value] : emitted.tuples) {
          put_string(mapped.emitted, key);
          put_string(mapped.emitted, value);
        }
      }
      mapped.ends.push_back(mapped.emitted.size());
    }
    return mapped;
  }
  Status combine(std::span<const KeyedValues> keys,
                 const std::function<void(std::size_t, std::string_view)>& on_value) override {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::string into(keys[i].values.front());
      for (const std::string_view value : keys[i].values.subspan(1)) {
        if (functions_->combine(keys[i].key, into, value)) continue;
        on_value(i, into);
        into = value;
      }
      on_value(i, into);
    }
    return Status::ok();
  }
  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) override {
    std::vector<std::optional<std::string>> results;
    for (const KeyedValues& key : keys) {
      OneResult one;
      FJORD_TRY(functions_->reduce(key.key, key.values, one));
      results.push_back(std::move(one.result));
    }
    return results;
  }

 private:
  std::unique_ptr<Application> functions_;
  Random random_;
};

}  // namespace

void add_batched_application(mapreduce::ApplicationRegistry& registry) {
  const mapreduce::ApplicationInfo* info = registry.find("fieldstats");
  FJORD_CHECK(info != nullptr);
  registry.add({kBatchedApplication, info->help, info->parameters,
                [make = info->make, made = std::make_shared<std::uint64_t>(0)] {
                  return std::make_unique<Batched>(make(), Random(++*made));
                },
                kVersion});
}

bool OffersBatched::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!std::holds_alternative<rpc::ListPlugins>(request)) return false;
  respond(rpc::ListPluginsReply{Status::ok(), {{"batched.so", "", {{kBatchedApplication, "", true, kVersion}}}}});
  return true;
}

}  // namespace fjord::sim
