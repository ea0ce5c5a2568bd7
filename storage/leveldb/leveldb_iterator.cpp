#include <optional>

#include "fjord/storage/spi/entry_filter.h"
#include "leveldb_engine.h"

namespace fjord::leveldb_store {

namespace {

/// Between two calls, the iterator keeps the last id and no LevelDB iterator. A LevelDB iterator would keep files that
/// compactions have replaced, and would be invalid after the database is opened again. Nothing is written within a
/// call, so each entry is given in its version at the time of the call, or of the snapshot.
class BucketIterator final : public spi::DocumentIterator {
 public:
  BucketIterator(Engine& engine, BucketId bucket, const Bucket& found, const spi::IterateOptions& options)
      : engine_(engine), id_(bucket), incarnation_(found.incarnation), uid_(found.catalog.uid), filter_(options) {
    if (options.snapshot) snapshot_.emplace(engine.store());
  }

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

  /// Gives entries to `sink` until `sink` returns false. Returns true if entries are left.
  template <typename Sink>
  Result<bool> walk(const Sink& sink) {
    Bucket* bucket = engine_.find(id_);
    if (bucket != nullptr && bucket->incarnation != incarnation_) bucket = nullptr;
    if (bucket == nullptr && !snapshot_) return no_bucket(id_);
    FJORD_TRY_ASSIGN(Scan heads, scan(Kind::Head));
    if (last_) {
      const std::string key = entry_key(uid_, Kind::Head, *last_);
      heads.seek(key);
      if (heads.valid() && heads.key() == key) heads.next();
    }
    Parts parts;
    filter_.begin_turn();
    for (bool go_on = true; heads.valid(); heads.next()) {
      if (!go_on || filter_.is_turn_over()) return true;
      last_ = gid_of_key(heads.key());
      const std::optional<EntryHead> head = decode_head(heads.value());
      const Status status = head ? emit(*head, parts, sink, go_on) : unreadable(id_, *last_);
      if (status) continue;
      if (bucket != nullptr && head && status.code() == StatusCode::Corruption) report(*bucket, *head);
      if (bucket != nullptr && !head) engine_.note_damage(id_, *bucket);
      return status;
    }
    const Status status = heads.status();
    if (bucket != nullptr && status.code() == StatusCode::Corruption) engine_.note_damage(id_, *bucket);
    FJORD_TRY(status);
    return false;
  }

  Result<Scan> scan(Kind kind) const {
    return engine_.store().scan(entries_prefix(uid_, kind), false, snapshot_ ? &*snapshot_ : nullptr);
  }

  /// Handles an entry that cannot be read. If the iterator has a snapshot, the entry may have been replaced since.
  void report(Bucket& bucket, const EntryHead& head) const {
    if (snapshot_) {
      engine_.note_damage(id_, bucket);
    } else {
      engine_.lose_entry(id_, bucket, *last_, head);
    }
  }

  /// Reads a part of the current entry. The result is valid until the next read of the same kind.
  Result<std::string_view> read(Kind kind, std::size_t length, std::optional<Scan>& of_kind) const {
    if (length == 0) return std::string_view{};
    const std::string key = entry_key(uid_, kind, *last_);
    if (!of_kind) {
      FJORD_TRY_ASSIGN(of_kind, scan(kind));
      of_kind->seek(key);
    }
    const Result<std::string_view> found = of_kind->find(key);
    const bool wrong = found ? found->size() != length : found.error().code() == StatusCode::NotFound;
    if (wrong) return unreadable(id_, *last_);
    return found;
  }

  template <typename Sink>
  Status emit(const EntryHead& head, Parts& parts, const Sink& sink, bool& go_on) {
    if (!filter_.wants(head.timestamp, head.removed)) return Status::ok();
    EntryView view{
        .gid = *last_, .timestamp = head.timestamp, .removed = head.removed, .id = {}, .header = {}, .body = {}};
    FJORD_TRY_ASSIGN(const std::string_view header, read(Kind::Header, head.header_bytes, parts.headers));
    if (head.removed) {
      view.id = header;
      go_on = sink(view);
      return Status::ok();
    }
    const bool selects_on_body = filter_.selects_on_body();
    if (!selects_on_body) {
      FJORD_TRY_ASSIGN(const bool is_match, filter_.matches(header, {}));
      if (!is_match) return Status::ok();
    }
    if (selects_on_body || filter_.wants_body()) {
      FJORD_TRY_ASSIGN(view.body, read(Kind::Body, head.body_bytes, parts.bodies));
    }
    if (selects_on_body) {
      FJORD_TRY_ASSIGN(const bool is_match, filter_.matches(header, view.body));
      if (!is_match) return Status::ok();
    }
    view.header = filter_.project(header);
    if (!filter_.wants_body()) view.body = {};
    go_on = sink(view);
    return Status::ok();
  }

  Engine& engine_;
  const BucketId id_;
  const std::uint64_t incarnation_;
  const std::uint64_t uid_;
  spi::EntryFilter filter_;
  std::optional<StoreSnapshot> snapshot_;
  std::optional<GlobalId> last_;  ///< Id of the last entry given; empty before the first one.
};

}  // namespace

std::unique_ptr<spi::DocumentIterator> make_iterator(Engine& engine, BucketId id, const Bucket& bucket,
                                                     const spi::IterateOptions& options) {
  return std::make_unique<BucketIterator>(engine, id, bucket, options);
}

}  // namespace fjord::leveldb_store
