// Regular expressions. RE2 takes time proportional to the text as long as its automaton (DFA) fits into memory. If not,
// it goes on with one (NFA) that costs the size of the program for each byte. Its hooks tell when that is about to
// happen, and end the search there.

#include "selection_pattern.h"

#include <fmt/format.h>
#include <optional>
#include <re2/re2.h>
#include <string>

#include "fjord/document/selection.h"

namespace re2::hooks {
// The shared library of some systems hides these; then they are null, and the size of the text is all that limits the
// time.
__attribute__((weak)) void SetDFAStateCacheResetHook(DFAStateCacheResetCallback* cb);
__attribute__((weak)) void SetDFASearchFailureHook(DFASearchFailureCallback* cb);
}  // namespace re2::hooks

namespace fjord::selection {
namespace {

/// Memory of the automata of a selection, and of one of them. A text can fill it in about a nanosecond for each byte.
constexpr std::size_t kSharedMemory = std::size_t{1} << 20;
constexpr std::size_t kMemoryMax = kSharedMemory / 2;
constexpr std::size_t kRegexBytesMax = std::size_t{16} << 10;
/// Up to this product of text and program a search may go on without the automaton: about half a millisecond.
constexpr std::uint64_t kSlowProductMax = 1 << 15;
/// Steps for each instruction and byte without the automaton.
constexpr std::uint64_t kSlowSteps = 16;
/// Product of text and program that is searched if RE2 has no hooks.
constexpr std::uint64_t kUnwatchedMax = std::uint64_t{1} << 24;

/// The search that runs on this thread.
struct Search {
  Budget& budget;
  std::uint64_t reset_steps;  ///< Steps in which the memory of the automaton has been filled.
  std::uint64_t product;      ///< Bytes of the text times instructions of the program.
};
thread_local Search* current_search = nullptr;

/// Ends a search. RE2 calls the hooks where it holds nothing but objects with destructors, so an exception may pass.
struct TooManySteps {};

void on_reset(const re2::hooks::DFAStateCacheReset&) {
  if (current_search == nullptr) return;
  if (!current_search->budget.spend(current_search->reset_steps)) throw TooManySteps();
}

void on_failure(const re2::hooks::DFASearchFailure&) {
  if (current_search == nullptr) return;
  const std::uint64_t product = current_search->product;
  if (product > kSlowProductMax || !current_search->budget.spend(product * kSlowSteps)) throw TooManySteps();
}

/// Returns false if this RE2 has no hooks.
bool set_hooks() {
  if (re2::hooks::SetDFAStateCacheResetHook == nullptr) return false;
  re2::hooks::SetDFAStateCacheResetHook(&on_reset);
  re2::hooks::SetDFASearchFailureHook(&on_failure);
  return true;
}

bool has_hooks() {
  static const bool has = set_hooks();
  return has;
}

class Re2Regex final : public Regex {
 public:
  explicit Re2Regex(std::string_view text) : text_(text) { make(kMemoryMax); }

  const RE2& regex() const { return *regex_; }
  std::size_t instructions() const override { return static_cast<std::size_t>(regex_->ProgramSize()); }

  void share_memory(std::size_t expressions) override {
    if (kSharedMemory / expressions < memory_) make(kSharedMemory / expressions);
  }

  bool matches(std::string_view text, Budget& budget) const override {
    const std::uint64_t product = text.size() * instructions();
    const bool is_watched = has_hooks();
    if (text.size() > Selection::kRegexTextMax || (!is_watched && product > kUnwatchedMax)) {
      return budget.exceed(), false;
    }
    if (!budget.spend(text.size() + instructions())) return false;
    Search search{budget, memory_, product};
    current_search = &search;
    bool is_match = false;
    try {
      is_match = regex_->Match(re2::StringPiece(text.data(), text.size()), 0, text.size(), RE2::UNANCHORED, nullptr, 0);
    } catch (const TooManySteps&) {
      budget.exceed();
    }
    current_search = nullptr;
    return is_match;
  }

 private:
  void make(std::size_t memory) {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_never_capture(true);
    options.set_max_mem(static_cast<std::int64_t>(memory));
    memory_ = memory;
    regex_ = std::make_unique<RE2>(re2::StringPiece(text_), options);
  }

  std::string text_;
  std::size_t memory_ = 0;
  std::unique_ptr<RE2> regex_;
};

Status unusable(std::string_view why) {
  return {StatusCode::InvalidSelection, fmt::format("not a regular expression: {}", why)};
}

}  // namespace

Result<std::unique_ptr<Regex>> Regex::compile(std::string_view text) {
  if (text.size() > kRegexBytesMax) {
    return unusable(fmt::format("{} bytes are more than the limit of {}", text.size(), kRegexBytesMax));
  }
  auto compiled = std::make_unique<Re2Regex>(text);
  if (!compiled->regex().ok()) return unusable(compiled->regex().error());
  if (compiled->instructions() > Selection::kRegexInstructionsMax) {
    return unusable(fmt::format("it is too large: its program has {} instructions, and {} are the limit",
                                compiled->instructions(), Selection::kRegexInstructionsMax));
  }
  return std::unique_ptr<Regex>(std::move(compiled));
}

}  // namespace fjord::selection
