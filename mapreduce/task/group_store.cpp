#include "group_store.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/free_memory.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::mapreduce {
namespace {

/// A file is a sequence of frames: length:u32 checksum:u32 bytes. A frame holds whole tuples: destination:varint
/// key:string values:varint value:string*.
constexpr std::size_t kFrameBytes = std::size_t{64} << 10;
constexpr std::size_t kFrameHead = 8;
constexpr std::size_t kLargeTable = std::size_t{4} << 20;

Status damaged(const std::string& path) {
  return Status(StatusCode::Corruption, "groups written to " + path + " cannot be read back");
}

}  // namespace

Status SpillArea::clean() { return is_there() ? env_.remove_all(directory_) : Status::ok(); }

Result<std::string> SpillArea::new_path() {
  FJORD_TRY(env_.create_directories(directory_));
  return directory_ + "/groups-" + std::to_string(next_.fetch_add(1));
}

/// A file of sorted tuples. After a read error nothing more may be read.
struct GroupStore::Run final : TupleSource {
  Run(Env& file_env, std::string file_path) : env(file_env), path(std::move(file_path)) {}
  ~Run() override {
    file.reset();
    if (const Status status = env.remove_file(path); !status) {
      log::warning("job", "{} is left behind: {}", path, status.to_string());
    }
  }

  Status flush() {
    if (frame.empty()) return Status::ok();
    std::string head;
    put_fixed(head, static_cast<std::uint32_t>(frame.size()));
    put_fixed(head, checksum32(frame, at));
    const std::string_view pieces[] = {head, frame};
    FJORD_TRY(file->write_gather(at, pieces));
    at += head.size() + frame.size();
    frame.clear();
    return Status::ok();
  }

  Status write(TupleSource& source) {
    Tuple tuple;
    for (;;) {
      FJORD_TRY_ASSIGN(const bool more, source.next(tuple));
      if (!more) break;
      put_varint(frame, tuple.destination);
      put_string(frame, tuple.key);
      put_varint(frame, tuple.values.size());
      for (const std::string_view value : tuple.values) put_string(frame, value);
      if (frame.size() >= kFrameBytes) FJORD_TRY(flush());
    }
    FJORD_TRY(flush());
    end = at;
    at = 0;
    return Status::ok();
  }

  Result<bool> next(Tuple& tuple) override {
    if (rest.empty()) {
      if (at == end) return false;
      char head[kFrameHead];
      FJORD_TRY_ASSIGN(const std::size_t read, file->read(at, head));
      const std::uint64_t length = load_fixed<std::uint32_t>(head);
      if (read != kFrameHead || at + kFrameHead + length > end || length == 0) return damaged(path);
      frame.resize(length);
      FJORD_TRY_ASSIGN(const std::size_t got, file->read(at + kFrameHead, frame));
      if (got != length || checksum32(frame, at) != load_fixed<std::uint32_t>(head + 4)) return damaged(path);
      at += kFrameHead + length;
      rest = frame;
    }
    ByteReader in(rest);
    tuple.destination = static_cast<std::uint32_t>(in.varint());
    tuple.key = in.string();
    const std::uint64_t count = in.varint();
    tuple.values.clear();
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) tuple.values.push_back(in.string());
    if (!in.ok()) return damaged(path);
    rest = in.rest();
    return true;
  }

  Env& env;
  std::string path;
  std::unique_ptr<RandomAccessFile> file;
  std::string frame;
  std::string_view rest;  ///< Unread part of the frame.
  std::uint64_t at = 0;
  std::uint64_t end = 0;
};

namespace {

/// Merges sorted sources into one; values of the same key are combined.
class MergingSource final : public TupleSource {
 public:
  MergingSource(std::vector<TupleSource*> sources, std::unique_ptr<TupleSource> owned,
                std::unique_ptr<Accumulator> scratch)
      : owned_(std::move(owned)), scratch_(std::move(scratch)) {
    for (TupleSource* source : sources) heads_.emplace_back().source = source;
  }

  Result<bool> next(Tuple& tuple) override {
    for (Head& head : heads_) {
      if (head.is_given) FJORD_TRY(advance(head));
    }
    Head* first = nullptr;
    std::size_t equal = 0;
    for (Head& head : heads_) {
      if (head.is_over) continue;
      const auto order = first == nullptr ? std::strong_ordering::less
                                          : std::tie(head.tuple.destination, head.tuple.key) <=>
                                                std::tie(first->tuple.destination, first->tuple.key);
      if (order < 0) {
        first = &head;
        equal = 1;
      } else if (order == 0) {
        ++equal;
      }
    }
    if (first == nullptr) return false;
    if (equal == 1) {
      first->is_given = true;
      tuple = first->tuple;
      return true;
    }
    return combine(*first, tuple);
  }

 private:
  struct Head {
    TupleSource* source = nullptr;
    Tuple tuple;
    bool is_given = true;  ///< The tuple was returned, or none has been read.
    bool is_over = false;
  };

  static Status advance(Head& head) {
    head.is_given = false;
    FJORD_TRY_ASSIGN(const bool more, head.source->next(head.tuple));
    head.is_over = !more;
    return Status::ok();
  }

  Result<bool> combine(Head& first, Tuple& tuple) {
    combined_.reset();
    scratch_->clear();
    const std::uint32_t destination = first.tuple.destination;
    key_ = first.tuple.key;
    for (Head& head : heads_) {
      if (head.is_over || head.tuple.destination != destination || head.tuple.key != key_) continue;
      for (const std::string_view value : head.tuple.values) FJORD_TRY(scratch_->merge(key_, value));
      head.is_given = true;
    }
    combined_ = scratch_->drain(0);
    FJORD_TRY_ASSIGN(const bool any, combined_->next(tuple));
    tuple.destination = destination;
    return any;
  }

  std::unique_ptr<TupleSource> owned_;
  std::unique_ptr<Accumulator> scratch_;
  std::vector<Head> heads_;
  std::unique_ptr<TupleSource> combined_;
  std::string key_;
};

}  // namespace

GroupStore::GroupStore(Application& application, SpillArea& area, GroupStoreOptions options,
                       std::function<bool()> cancelled)
    : application_(application),
      area_(area),
      options_(options),
      // Values are combined when they take half of the memory, so that combining frees room before the limit is
      // reached.
      table_(make_accumulator(application, std::move(cancelled), options.memory_bytes / 2)) {}

GroupStore::~GroupStore() {
  const bool is_large = table_->bytes() >= kLargeTable;
  table_.reset();
  if (is_large) return_free_memory();  // the next task could not reuse it: its tuples have other sizes
}

Status GroupStore::keep_within_memory() {
  if (table_->bytes() <= options_.memory_bytes) return Status::ok();
  if (area_.is_there()) return spill();
  return Status(StatusCode::TooLarge,
                "the tuples of one task need more than " + std::to_string(options_.memory_bytes) + " bytes (" +
                    std::to_string(table_->groups()) +
                    " keys so far); the limit is the setting mapreduce.task_memory_bytes",
                {.limit = std::to_string(options_.memory_bytes), .setting = "mapreduce.task_memory_bytes"});
}

Status GroupStore::spill() {
  FJORD_TRY_ASSIGN(const std::string path, area_.new_path());
  auto run = std::make_unique<Run>(area_.env(), path);
  FJORD_TRY_ASSIGN(run->file, area_.env().create_random_access(path));
  FJORD_TRY(run->write(*table_->drain(options_.destinations)));
  table_->clear();
  spilled_bytes_ += run->end;
  if (spilled_bytes_ > options_.spill_bytes) {
    return Status(StatusCode::TooLarge,
                  "the groups of one task need more than " + std::to_string(spilled_bytes_) +
                      " bytes on disk; the limit is the setting mapreduce.task_spill_bytes",
                  {.limit = std::to_string(options_.spill_bytes), .setting = "mapreduce.task_spill_bytes"});
  }
  runs_.push_back(std::move(run));
  return Status::ok();
}

Result<std::unique_ptr<TupleSource>> GroupStore::finish() {
  auto in_memory = table_->drain(options_.destinations);
  if (runs_.empty()) return in_memory;
  std::vector<TupleSource*> sources;
  for (const auto& run : runs_) sources.push_back(run.get());
  sources.push_back(in_memory.get());
  return std::unique_ptr<TupleSource>(
      std::make_unique<MergingSource>(std::move(sources), std::move(in_memory), make_accumulator(application_)));
}

}  // namespace fjord::mapreduce
