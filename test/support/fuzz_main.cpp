// Drives LLVMFuzzerTestOneInput without libFuzzer: first with every file of the corpus, then with mutations of these
// files. It does not follow coverage. It is repeatable (equal seeds give equal inputs) and runs under any sanitizer.
//
//   x_fuzz [--runs=N] [--seed=N] [file or folder...]
//
// The current input is kept in the file x_fuzz.input in the working folder, which remains if a run crashes.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kBytesMax = 4096;

struct Options {
  std::uint64_t runs = 20'000;
  std::uint64_t seed = 1;
  std::vector<std::filesystem::path> corpus;
};

std::optional<std::uint64_t> number_after(std::string_view argument, std::string_view prefix) {
  if (!argument.starts_with(prefix)) return std::nullopt;
  argument.remove_prefix(prefix.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  if (error != std::errc() || end != argument.data() + argument.size()) return std::nullopt;
  return value;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

/// Returns the files in order of their names, so that a seed means the same on every machine, and the empty input.
std::vector<Bytes> read_corpus(const std::vector<std::filesystem::path>& places) {
  std::vector<std::filesystem::path> files;
  for (const auto& place : places) {
    if (!std::filesystem::is_directory(place)) {
      files.push_back(place);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus = {Bytes()};
  for (const auto& file : files) corpus.push_back(read_file(file));
  return corpus;
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Bytes>& corpus) : engine_(seed), corpus_(corpus) {}

  Bytes next() {
    Bytes bytes = corpus_[below(corpus_.size())];
    const std::size_t changes = 1 + below(8);
    for (std::size_t i = 0; i < changes; ++i) change(bytes);
    if (bytes.size() > kBytesMax) bytes.resize(kBytesMax);
    return bytes;
  }

 private:
  /// Not std::uniform_int_distribution, whose numbers differ between standard libraries.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(engine_() % bound); }

  std::uint8_t any_byte() {
    // Edge values of lengths, counts and type tags break most often.
    static constexpr std::uint8_t kEdges[] = {0, 1, 0x7f, 0x80, 0xff};
    if (below(2) == 0) return kEdges[below(std::size(kEdges))];
    return static_cast<std::uint8_t>(below(256));
  }

  auto place_in(Bytes& bytes) { return bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)); }

  void change(Bytes& bytes) {
    const std::size_t kind = below(6);
    if (kind == 0 || bytes.empty()) {
      bytes.insert(place_in(bytes), 1 + below(16), any_byte());
    } else if (kind == 1) {
      const auto from = place_in(bytes);
      const auto left = static_cast<std::size_t>(bytes.end() - from);
      bytes.erase(from, from + static_cast<std::ptrdiff_t>(below(left + 1)));
    } else if (kind == 2) {
      bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1U << below(8));
    } else if (kind == 3) {
      bytes[below(bytes.size())] = any_byte();
    } else if (kind == 4) {
      const Bytes& other = corpus_[below(corpus_.size())];
      bytes.insert(place_in(bytes), other.begin(),
                   other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)));
    } else {
      bytes.resize(below(bytes.size()));
    }
  }

  std::mt19937_64 engine_;
  const std::vector<Bytes>& corpus_;
};

/// Keeps the current input in a file, which survives if the process dies at any time.
class Record {
 public:
  explicit Record(std::filesystem::path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record() { ::close(descriptor_); }

  bool keep(const Bytes& input) {
    return ::pwrite(descriptor_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()) &&
           ::ftruncate(descriptor_, static_cast<off_t>(input.size())) == 0;
  }

  void remove() { std::filesystem::remove(path_); }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

void run_one(Record& record, const Bytes& input) {
  if (!record.keep(input)) {
    std::perror("cannot keep the input in progress");
    std::exit(2);
  }
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (const auto runs = number_after(argument, "--runs=")) {
      options.runs = *runs;
    } else if (const auto seed = number_after(argument, "--seed=")) {
      options.seed = *seed;
    } else if (!argument.starts_with("--") && std::filesystem::exists(argument)) {
      options.corpus.emplace_back(argument);
    } else {
      std::fprintf(stderr, "neither an option nor a file: %s\n", argv[i]);
      return 2;
    }
  }
  Record record(std::filesystem::path(argv[0]).filename().string() + ".input");
  const std::vector<Bytes> corpus = read_corpus(options.corpus);
  for (const Bytes& input : corpus) run_one(record, input);
  Mutator mutator(options.seed, corpus);
  for (std::uint64_t run = 0; run < options.runs; ++run) run_one(record, mutator.next());
  record.remove();
  std::printf("%zu inputs of the corpus and %llu mutations, seed %llu: no failure\n", corpus.size(),
              static_cast<unsigned long long>(options.runs), static_cast<unsigned long long>(options.seed));
  return 0;
}
