#include <optional>

#include "fjord/storage/spi/entry_filter.h"
#include "leveldb_engine.h"

namespace fjord::leveldb_store {

namespace {

/// Between two calls it keeps the id that it looked at last, and no LevelDB iterator: that would hold on to files that
/// compactions have replaced, and to the database when it has to be opened again. Within a call nobody writes, so what
/// it gives is the version of that time.
class BucketIterator final : public spi::DocumentIterator {
 public:
  BucketIterator(Engine& engine, BucketId bucket, std::uint64_t incarnation, const spi::IterateOptions& options)
      : engine_(engine), id_(bucket), incarnation_(incarnation), filter_(options) {}

  Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) override {
    return walk([&](const EntryView& entry) {
      into.add(entry);
      return into.size() < max_bytes;
    });
  }

  Result<bool> visit(const std::function<bool(const EntryView&)>& sink) override { return walk(sink); }

 private:
  struct Parts {
    std::optional<Scan> headers;
    std::optional<Scan> bodies;
  };

  /// Gives entries to `sink` until that returns false. Returns true if something is left.
  template <typename Sink>
  Result<bool> walk(const Sink& sink) {
    Bucket* bucket = engine_.find(id_);
    if (bucket == nullptr || bucket->incarnation != incarnation_) return no_bucket(id_);
    const std::uint64_t uid = bucket->catalog.uid;
    FJORD_TRY_ASSIGN(Scan heads, engine_.store().scan(entries_prefix(uid, Kind::Head)));
    if (last_) {
      const std::string key = entry_key(uid, Kind::Head, *last_);
      heads.seek(key);
      if (heads.valid() && heads.key() == key) heads.next();
    }
    Parts parts;
    for (bool go_on = true; heads.valid(); heads.next()) {
      if (!go_on) return true;
      last_ = gid_of_key(heads.key());
      const std::optional<EntryHead> head = decode_head(heads.value());
      const Status status = head ? emit(uid, *head, parts, sink, go_on) : unreadable(id_, *last_);
      if (status) continue;
      if (head && status.code() == StatusCode::Corruption) engine_.lose_entry(id_, *bucket, *last_, *head);
      if (!head) engine_.note_damage(id_, *bucket);
      return status;
    }
    const Status status = heads.status();
    if (status.code() == StatusCode::Corruption) engine_.note_damage(id_, *bucket);
    FJORD_TRY(status);
    return false;
  }

  /// Good until the next read of that kind.
  Result<std::string_view> read(std::uint64_t uid, Kind kind, std::size_t length, std::optional<Scan>& scan) const {
    if (length == 0) return std::string_view{};
    if (!scan) {
      FJORD_TRY_ASSIGN(scan, engine_.store().scan(entries_prefix(uid, kind)));
      scan->seek(entry_key(uid, kind, *last_));
    }
    const Result<std::string_view> found = scan->find(entry_key(uid, kind, *last_));
    const bool wrong = found ? found->size() != length : found.error().code() == StatusCode::NotFound;
    if (wrong) return unreadable(id_, *last_);
    return found;
  }

  template <typename Sink>
  Status emit(std::uint64_t uid, const EntryHead& head, Parts& parts, const Sink& sink, bool& go_on) const {
    if (!filter_.wants(head.timestamp, head.removed)) return Status::ok();
    EntryView view{
        .gid = *last_, .timestamp = head.timestamp, .removed = head.removed, .id = {}, .header = {}, .body = {}};
    FJORD_TRY_ASSIGN(const std::string_view header, read(uid, Kind::Header, head.header_bytes, parts.headers));
    if (head.removed) {
      view.id = header;
      go_on = sink(view);
      return Status::ok();
    }
    const bool selects_on_body = filter_.selects_on_body();
    if (filter_.has_selection() && !selects_on_body && !filter_.matches(header, {})) return Status::ok();
    if (selects_on_body || filter_.wants_body()) {
      FJORD_TRY_ASSIGN(view.body, read(uid, Kind::Body, head.body_bytes, parts.bodies));
    }
    if (selects_on_body && !filter_.matches(header, view.body)) return Status::ok();
    view.header = filter_.project(header);
    if (!filter_.wants_body()) view.body = {};
    go_on = sink(view);
    return Status::ok();
  }

  Engine& engine_;
  const BucketId id_;
  const std::uint64_t incarnation_;
  const spi::EntryFilter filter_;
  std::optional<GlobalId> last_;  ///< Nothing before the first.
};

}  // namespace

std::unique_ptr<spi::DocumentIterator> make_iterator(Engine& engine, BucketId bucket, std::uint64_t incarnation,
                                                     const spi::IterateOptions& options) {
  return std::make_unique<BucketIterator>(engine, bucket, incarnation, options);
}

}  // namespace fjord::leveldb_store
