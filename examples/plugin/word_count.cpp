// A MapReduce application: counts the occurrences of each word in a field, and the documents that contain it.
//
//   fjord job run word_count --type page --param field=text --param min_length=4 --wait

#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <fjord/plugins/plugin.h>

namespace {

using fjord::Field;
using fjord::Result;
using fjord::Status;
using fjord::StatusCode;
using fjord::mapreduce::Emitter;
using fjord::mapreduce::JobFunctions;
using fjord::mapreduce::ResultEmitter;
using fjord::plugins::ApplicationContext;

/// The counts of a word so far; its value is "words documents".
struct Count {
  std::uint64_t words = 0;
  std::uint64_t documents = 0;

  void add(std::string_view value) {
    const std::size_t space = value.find(' ');
    std::uint64_t number = 0;
    std::from_chars(value.data(), value.data() + space, number);
    words += number;
    std::from_chars(value.data() + space + 1, value.data() + value.size(), number);
    documents += number;
  }
  std::string text() const { return std::to_string(words) + " " + std::to_string(documents); }
};

class WordCount final : public JobFunctions {
 public:
  WordCount(const Field& field, std::size_t min_length) : field_(field), min_length_(min_length) {}

  Status map(const fjord::DocumentView& document, Emitter& emitter) override {
    const auto text = document.field(field_);
    if (!text) return Status::ok();
    std::map<std::string_view, std::uint64_t> counts;
    std::string_view rest = text->as_string_view();
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      if (!word.empty() && word.size() >= min_length_) ++counts[word];
    }
    for (const auto& [word, count] : counts) emitter.emit(word, Count{count, 1}.text());
    return Status::ok();
  }

  bool combine(std::string_view, std::string& into, std::string_view value) override {
    Count count;
    count.add(into);
    count.add(value);
    into = count.text();
    return true;
  }

  Status reduce(std::string_view, std::span<const std::string_view> values, ResultEmitter& result) override {
    Count count;
    for (const std::string_view value : values) count.add(value);
    result.emit("{\"words\":" + std::to_string(count.words) + ",\"documents\":" + std::to_string(count.documents) +
                "}");
    return Status::ok();
  }

  bool needs_body() const override { return !field_.in_header; }

 private:
  const Field& field_;
  std::size_t min_length_;
};

Result<std::unique_ptr<JobFunctions>> make(const ApplicationContext& context) {
  const std::string& name = context.parameters.text("field");
  const Field* field = context.type.field(name);
  if (field == nullptr || field->type->tag() != fjord::TypeTag::String)
    return Status(StatusCode::InvalidField, "the type " + context.type.name() + " has no field " + name + " of text");
  FJORD_TRY_ASSIGN(const std::int64_t min_length, context.parameters.integer("min_length", 1, 1000));
  return std::unique_ptr<JobFunctions>(new WordCount(*field, static_cast<std::size_t>(min_length)));
}

}  // namespace

FJORD_PLUGIN(registry) {
  registry.add_application(
      "word_count", {"1",
                     "Counts words, which spaces part. One result a word: {\"words\":N,\"documents\":N}.",
                     {{"field", "The field with text.", "text"}, {"min_length", "Shorter words do not count.", "1"}},
                     &make});
}
