#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "fjord/common/hash.h"
#include "partial_reader.h"
#include "task/task_visitors.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kMergedAtOnce = 256;
constexpr std::size_t kPartialBytesMax = std::size_t{1} << 30;

/// A document that was read, with the tuples that map made of it.
struct FreshDocument {
  spi::EntryMeta meta;
  std::size_t at = 0;  ///< Position of the document's tuples in FreshDocuments::tuples.
  std::size_t bytes = 0;
  bool is_dead = false;
};

struct FreshDocuments {
  std::vector<FreshDocument> documents;
  std::string tuples;

  std::string_view of(const FreshDocument& document) const {
    return std::string_view(tuples).substr(document.at, document.bytes);
  }
  std::size_t bytes() const { return documents.size() * sizeof(FreshDocument) + tuples.size(); }
};

/// The progress of one of the buckets that are read together. `known` is the bucket's partial of an earlier job.
struct BucketWork {
  std::shared_ptr<BucketPartial> known;
  std::uint64_t serial = 0;  ///< Serial of `known` when reading the bucket began; 0: no partial.
  std::shared_ptr<PartialReader> reader;
  FreshDocuments fresh;
  std::uint64_t read = 0;      ///< Documents given to map.
  bool is_lost = false;        ///< Tuples of documents that were read are merged into the table, and so not kept.
  bool is_incomplete = false;  ///< The bucket changed while it was read, so `known` matches none of its states.
  bool is_updated = false;     ///< `known` now contains the documents that were read.

  bool may_be_kept() const { return known != nullptr && !(is_updated && (is_lost || is_incomplete)); }
  TaskReport report;
};

/// The tuples of another source except those of the given keys.
class SourceWithout final : public TupleSource {
 public:
  SourceWithout(std::unique_ptr<TupleSource> source, const std::set<std::string, std::less<>>& keys)
      : source_(std::move(source)), keys_(keys) {}
  Result<bool> next(Tuple& tuple) override {
    for (;;) {
      FJORD_TRY_ASSIGN(const bool more, source_->next(tuple));
      if (!more || !keys_.contains(tuple.key)) return more;
    }
  }

 private:
  std::unique_ptr<TupleSource> source_;
  const std::set<std::string, std::less<>>& keys_;
};

/// Returns a text that identifies what the job computes; other computations have other texts.
std::string query_text(const TaskSpec& spec) {
  std::string text;
  for (const std::string* part : {&spec.application, &spec.document_type, &spec.incremental}) put_string(text, *part);
  for (const rpc::Parameter& parameter : spec.parameters) {
    put_string(text, parameter.name);
    put_string(text, parameter.value);
  }
  return text;
}

/// Buckets that are read together form a unit, as in direct_map_visitor.cpp. The first job reads all documents of a
/// bucket; later jobs with the same query read only those that have changed. The tuples of each document are kept
/// separately, so that they can be taken out of the groups when the document changes.
class IncrementalMapVisitor final : public visitors::Visitor {
 public:
  IncrementalMapVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
                        std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        application_(std::move(application)),
        table_(make_accumulator(*application_, [&visit = context] { return visit.cancelled(); })),
        query_(shared_->partials.query(query_text(spec_), context_.types())),
        batch_size_(shared_->clock) {}
  ~IncrementalMapVisitor() override { give_back(); }

  Status begin_bucket(BucketId bucket) override {
    if (works_.empty()) begin_unit(bucket);
    if (is_broken_) return broken();
    BucketWork& work = works_[bucket];
    work.known = shared_->partials.take(query_, bucket);
    if (work.known != nullptr) work.serial = work.known->serial;
    work.is_lost = is_overflown_;
    work.reader = std::make_shared<PartialReader>(work.known);
    open_.insert(bucket);
    return Status::ok();
  }

  std::shared_ptr<visitors::BucketReader> make_reader(BucketId bucket) override { return works_.at(bucket).reader; }

  Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t from) override {
    if (is_broken_) return broken();
    BucketWork& work = works_.at(bucket);
    const std::uint64_t read = work.read;
    const BusyTime busy(*shared_, spec_, context_, work.report);
    std::vector<FreshDocument> metas;
    std::vector<DocumentView> views;
    const auto map_collected = [&]() -> Status {
      batch_size_.begin();
      FJORD_TRY(map_many(work, metas, views));
      batch_size_.end(views.size());
      metas.clear();
      views.clear();
      return Status::ok();
    };
    const auto one = [&](const EntryView& entry, const DocumentView& view) -> Status {
      work.report.bytes += entry.header.size() + entry.body.size();
      if (!table_->takes_many()) return map(work, entry, view);
      metas.push_back({.meta = {entry.gid, entry.timestamp, false}});
      views.push_back(view);
      return views.size() < batch_size_.documents() ? Status::ok() : map_collected();
    };
    const auto is_over = [&] { return views.empty() && busy.is_over(); };
    const auto end = for_some_documents(docblock, from, context_, one, is_over);
    const Status status = end ? map_collected() : end.error();
    shared_->metrics.documents.add(work.read - read);
    FJORD_TRY(status);
    return end;
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    open_.erase(bucket);
    waiting_.emplace_back(bucket, std::move(done));
    if (open_.empty()) end_unit();
  }

  void abandon_bucket(BucketId bucket) override {
    open_.erase(bucket);
    is_broken_ = true;
    give_back();
    works_.erase(bucket);
    if (open_.empty()) end_unit();
  }

 private:
  static Status broken() {
    return Status(StatusCode::NotReady, "a bucket that was read together with this one failed");
  }

  void begin_unit(BucketId bucket) {
    carrier_ = bucket;
    unit_ = shared_->new_unit();
    chunks_ = sent_bytes_ = 0;
    fresh_bytes_ = 0;
    is_broken_ = is_overflown_ = was_shipped_ = false;
    table_->clear();
  }

  /// Puts the partials back into the cache. Before the end of the unit they are as they were taken out.
  void give_back() {
    for (auto& [bucket, work] : works_) {
      if (work.may_be_kept()) shared_->partials.put(query_, bucket, work.known);
      work.known.reset();
    }
  }

  std::size_t memory() const { return static_cast<std::size_t>(shared_->memory.value()); }

  Status map(BucketWork& work, const EntryView& entry, const DocumentView& view) {
    ++work.read;
    const std::uint64_t tuples = table_->tuples();
    const std::size_t dead = work.report.dead_letters.size();
    FreshDocument document{.meta = {entry.gid, entry.timestamp, false}, .at = work.fresh.tuples.size()};
    Status status;
    if (is_overflown_) {
      status = map_or_set_aside(*table_, view, spec_, work.report);
      if (status && table_->bytes() > memory()) status = ship_table();
    } else {
      status = map_alone_or_set_aside(*table_, view, spec_, work.report, work.fresh.tuples);
    }
    work.report.tuples += table_->tuples() - tuples;
    shared_->metrics.tuples.add(table_->tuples() - tuples);
    FJORD_TRY(status);
    if (is_overflown_) return Status::ok();
    document.bytes = work.fresh.tuples.size() - document.at;
    document.is_dead = work.report.dead_letters.size() != dead;
    work.fresh.documents.push_back(document);
    fresh_bytes_ += sizeof(document) + document.bytes;
    return fresh_bytes_ > memory() ? overflow() : Status::ok();
  }

  /// As map(), for many documents in batches.
  Status map_many(BucketWork& work, std::span<FreshDocument> documents, std::span<const DocumentView> views) {
    while (!views.empty()) {
      const std::uint64_t tuples = table_->tuples();
      const bool alone = !is_overflown_;
      FJORD_TRY_ASSIGN(const MappedDocuments mapped, alone ? table_->map_many_alone(views) : table_->map_many(views));
      work.report.tuples += table_->tuples() - tuples;
      shared_->metrics.tuples.add(table_->tuples() - tuples);
      work.read += mapped.documents;
      for (const auto& [document, why] : mapped.failed) {
        const std::size_t dead = work.report.dead_letters.size();
        if (const Status status = or_set_aside(why, views[document], spec_, work.report); !status)
          return status.with_context("document " + std::string(views[document].id()));
        documents[document].is_dead = work.report.dead_letters.size() != dead;
      }
      if (alone) FJORD_TRY(take_alone(work, documents, mapped));
      if (is_overflown_ && table_->bytes() > memory()) FJORD_TRY(ship_table());
      documents = documents.subspan(mapped.documents);
      views = views.subspan(mapped.documents);
    }
    return Status::ok();
  }

  Status take_alone(BucketWork& work, std::span<FreshDocument> documents, const MappedDocuments& mapped) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < mapped.ends.size(); ++i) {
      FreshDocument& document = documents[i];
      const std::string_view tuples = std::string_view(mapped.emitted).substr(begin, mapped.ends[i] - begin);
      begin = mapped.ends[i];
      if (is_overflown_) {
        FJORD_TRY(merge(tuples));
        continue;
      }
      document.at = work.fresh.tuples.size();
      document.bytes = tuples.size();
      work.fresh.tuples += tuples;
      work.fresh.documents.push_back(document);
      fresh_bytes_ += sizeof(document) + document.bytes;
      if (fresh_bytes_ > memory()) FJORD_TRY(overflow());
    }
    return Status::ok();
  }

  /// Called when the documents that were read exceed the memory limit. From then on the unit is processed as in a job
  /// that is not incremental.
  Status overflow() {
    is_overflown_ = true;
    for (auto& [bucket, work] : works_) {
      drop_repeated(work.fresh);
      FJORD_TRY(merge(work.fresh.tuples));
      work.fresh = {};
      work.is_lost = true;
    }
    return Status::ok();
  }

  /// Keeps only the last version of each document: an iterator may return a document again if it changes meanwhile.
  static void drop_repeated(FreshDocuments& fresh) {
    std::unordered_set<GlobalId> seen;
    bool any = false;
    for (auto it = fresh.documents.rbegin(); it != fresh.documents.rend(); ++it) {
      if (seen.insert(it->meta.gid).second) continue;
      it->bytes = 0;
      it->meta.removed = true;  // marks the earlier version as repeated
      any = true;
    }
    if (!any) return;
    FreshDocuments kept;
    for (FreshDocument& document : fresh.documents) {
      if (document.meta.removed) continue;
      const std::string_view tuples = fresh.of(document);
      document.at = kept.tuples.size();
      kept.tuples += tuples;
      kept.documents.push_back(document);
    }
    fresh = std::move(kept);
  }

  Status merge(std::string_view tuples) {
    FJORD_TRY(for_each_alone(tuples, [this](auto key, auto value) { return merge_later(key, value); }));
    return merge_batch();
  }
  /// `key` and `value` must stay valid until merge_batch().
  Status merge_later(std::string_view key, std::string_view value) {
    batch_.push_back({hash64(key), key, value});
    return batch_.size() == kMergedAtOnce ? merge_batch() : Status::ok();
  }
  Status merge_batch() {
    const Status status = table_->merge(batch_);
    batch_.clear();
    return status;
  }

  // --- The end of a unit

  void end_unit() {
    Status status = is_broken_ ? broken() : finish();
    if (!status) give_back();
    for (auto& [bucket, done] : waiting_) {
      TaskReport& report = works_[bucket].report;
      report.unit = unit_;
      report.unit_buckets = waiting_.size();
      report.unit_chunks = chunks_;
      report.sent_bytes = std::exchange(sent_bytes_, 0);
      done({status, status ? report.encode() : std::string()});
    }
    waiting_.clear();
    works_.clear();
    table_->clear();
  }

  Status finish() {
    const BusyTime busy(*shared_, spec_, context_, works_.begin()->second.report);
    std::vector<BucketId> buckets;
    for (const auto& [bucket, work] : works_) buckets.push_back(bucket);
    auto unit = shared_->partials.take_unit(query_, buckets);
    if (unit != nullptr && is_unchanged(*unit)) {
      ship(unit->groups);
      shared_->partials.put_unit(query_, buckets, std::move(unit));
    } else {
      FJORD_TRY(finish_changed(unit != nullptr && !is_overflown_ && follows(*unit) ? unit.get() : nullptr, buckets));
    }
    for (auto& [bucket, work] : works_) {
      count(work);
      keep(bucket, work);
    }
    return Status::ok();
  }

  /// True if `unit` has the groups of the buckets' present content.
  bool is_unchanged(const UnitPartial& unit) const {
    return follows(unit) && std::all_of(works_.begin(), works_.end(), [](const auto& one) {
             return one.second.reader->found() == PartialReader::Found::Same;
           });
  }

  /// True if `unit` was made from the partials that this run began with, and all changes since then are known.
  bool follows(const UnitPartial& unit) const {
    return unit.serials.size() == works_.size() &&
           std::equal(works_.begin(), works_.end(), unit.serials.begin(), [](const auto& one, const auto& serial) {
             return one.first == serial.first && one.second.serial == serial.second &&
                    one.second.reader->found() != PartialReader::Found::All;
           });
  }

  /// Makes and sends the groups of a changed unit. With `before` the changes are applied to its groups; otherwise all
  /// groups are made from the partials of the buckets.
  Status finish_changed(const UnitPartial* before, const std::vector<BucketId>& buckets) {
    if (before != nullptr) {
      for (const std::string& piece : before->groups) {
        FJORD_TRY(for_each_tuple(piece, [this](auto key, auto value) { return merge_later(key, value); }));
      }
      FJORD_TRY(merge_batch());
    }
    doubtful_.clear();
    Status status;
    const auto retract = [&](std::string_view tuples) {
      if (before == nullptr || !status) return;
      status = for_each_alone(tuples, [this](std::string_view key, std::string_view value) {
        if (!doubtful_.contains(key) && !table_->retract(key, value)) doubtful_.emplace(key);
        return Status::ok();
      });
    };
    const auto add = [&](std::string_view tuples) {
      if (before != nullptr && status) status = merge(tuples);
    };
    for (auto& [bucket, work] : works_) update(work, retract, add);
    FJORD_TRY(status);
    std::vector<std::string> groups;
    if (before != nullptr && doubtful_.size() * 2 > table_->groups()) {  // rebuilding all groups is cheaper
      table_->clear();
      doubtful_.clear();
      before = nullptr;
    }
    if (before == nullptr) FJORD_TRY(merge_all());
    if (was_shipped_) return ship_table();
    FJORD_TRY(drain(groups));
    if (!doubtful_.empty()) {
      FJORD_TRY(make_doubtful_again());
      FJORD_TRY(drain(groups));
    }
    ship(groups);
    remember(buckets, std::move(groups));
    return Status::ok();
  }

  /// Updates the partial of a bucket to its present content.
  void update(BucketWork& work, const std::function<void(std::string_view)>& retract,
              const std::function<void(std::string_view)>& add) {
    if (work.reader->found() == PartialReader::Found::Same) return;
    work.is_updated = true;
    if (!work.reader->entries()) drop_repeated(work.fresh);
    if (work.reader->found() == PartialReader::Found::All) {
      work.known = made_again(work);
      return;
    }
    DocumentChanges& changes = work.reader->changes();
    for (const FreshDocument& document : work.fresh.documents) {
      DocumentChange& change = changes.at(document.meta.gid);
      change.meta = document.meta;
      change.gone = document.is_dead;
      change.mapped = !document.is_dead;
      change.tuples = work.fresh.of(document);
    }
    // If another visitor also holds the partial, the copy is changed and the other visitor's object is not.
    if (work.known.use_count() != 1) work.known = std::make_shared<BucketPartial>(*work.known);
    work.known->apply(changes, retract, add);
    work.known->serial = shared_->partials.new_serial();
  }

  std::shared_ptr<BucketPartial> made_again(BucketWork& work) {
    const bool is_complete = work.reader->entries().has_value();
    auto partial = std::make_shared<BucketPartial>();
    ContentVersion of_dead;
    std::unordered_set<GlobalId> given;
    const bool has_others = is_complete && !work.reader->entries()->empty();
    for (const FreshDocument& document : work.fresh.documents) {
      if (has_others) given.insert(document.meta.gid);
      if (document.is_dead) {
        of_dead.add(document.meta.gid, document.meta.timestamp, false);
      } else {
        partial->add(document.meta, true, work.fresh.of(document));
      }
    }
    if (has_others) {
      for (const spi::EntryMeta& entry : *work.reader->entries()) {
        if (!given.contains(entry.gid)) partial->add(entry, false, {});
      }
    }
    // The partial is complete only if its documents and the dead letters together are all entries of the bucket.
    const ContentVersion made{partial->version().entries + of_dead.entries,
                              partial->version().checksum + of_dead.checksum};
    work.is_incomplete = !is_complete || made != work.reader->content();
    partial->serial = shared_->partials.new_serial();
    work.fresh = {};
    return partial;
  }

  Status merge_all() {
    for (auto& [bucket, work] : works_) {
      if (work.known == nullptr) continue;
      FJORD_TRY(work.known->for_each_tuples(nullptr, [this](std::string_view tuples) {
        return for_each_alone(tuples, [this](auto key, auto value) { return merge_later(key, value); });
      }));
      FJORD_TRY(merge_batch());
      if (table_->bytes() > memory()) FJORD_TRY(ship_table());
    }
    return Status::ok();
  }

  /// Appends all groups of the table except the doubtful ones.
  Status drain(std::vector<std::string>& groups) {
    TupleDocuments pieces(std::make_unique<SourceWithout>(table_->drain(0), doubtful_), shared_->options.chunk_bytes);
    for (;;) {
      FJORD_TRY_ASSIGN(auto piece, pieces.next());
      if (!piece) return Status::ok();
      groups.push_back(std::move(piece->tuples));
    }
  }

  /// Rebuilds the doubtful groups from the tuples of the documents that still exist. A group is doubtful if a removed
  /// document may have been its extreme or its last one.
  Status make_doubtful_again() {
    table_->clear();
    const auto doubtful = std::exchange(doubtful_, {});
    const auto marks = std::make_unique<KeyMarks>();
    for (const std::string& key : doubtful) marks->add(key);
    for (auto& [bucket, work] : works_) {
      FJORD_TRY(work.known->for_each_tuples(marks.get(), [&](std::string_view tuples) {
        return for_each_alone(tuples, [&](std::string_view key, std::string_view value) {
          return doubtful.contains(key) ? merge_later(key, value) : Status::ok();
        });
      }));
      FJORD_TRY(merge_batch());
    }
    return Status::ok();
  }

  void remember(const std::vector<BucketId>& buckets, std::vector<std::string> groups) {
    auto unit = std::make_shared<UnitPartial>();
    for (const auto& [bucket, work] : works_) {
      if (work.is_lost || !work.may_be_kept()) return;
      unit->serials.emplace_back(bucket, work.known->serial);
    }
    unit->groups = std::move(groups);
    shared_->partials.put_unit(query_, buckets, std::move(unit));
  }

  void count(BucketWork& work) {
    TaskReport& report = work.report;
    report.documents = work.known->mapped() + (work.is_lost ? work.read : report.dead_letters.size());
    report.reused = report.documents - std::min(work.read, report.documents);
    shared_->metrics.reused.add(report.reused);
  }

  void keep(BucketId bucket, BucketWork& work) {
    const bool may_be_kept = work.may_be_kept();
    const auto known = std::move(work.known);
    if (!may_be_kept || known->bytes() > kPartialBytesMax) return;
    if (shared_->partials.put(query_, bucket, known)) return;
    if (!known->has_documents()) return;
    table_->clear();
    doubtful_.clear();
    const bool merged =
        known->for_each_tuples(nullptr, [this](std::string_view tuples) { return merge(tuples); }).is_ok();
    std::vector<std::string> groups;
    if (!merged || !drain(groups)) return;
    std::string tuples;
    for (const std::string& piece : groups) {
      const Status status = for_each_tuple(piece, [&](std::string_view key, std::string_view value) {
        put_string(tuples, key);
        put_string(tuples, value);
        return Status::ok();
      });
      if (!status) return;
    }
    known->reduce_to(std::move(tuples));
    shared_->partials.put(query_, bucket, known);
  }

  // --- Sending

  Status ship_table() {
    std::vector<std::string> groups;
    FJORD_TRY(drain(groups));
    table_->clear();
    was_shipped_ = true;
    ship(groups);
    return Status::ok();
  }

  void ship(const std::vector<std::string>& groups) {
    for (const std::string& piece : groups) {
      std::string chunk = TupleChunk::encode(unit_, piece);
      sent_bytes_ += chunk.size();
      context_.send(carrier_, std::move(chunk));
      ++chunks_;
    }
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::unique_ptr<Application> application_;
  std::unique_ptr<Accumulator> table_;
  std::uint64_t query_;
  BatchSize batch_size_;
  std::vector<HashedTuple> batch_;
  std::set<std::string, std::less<>> doubtful_;  ///< Keys of groups that are invalid in the table.

  // State of the current unit.
  BucketId carrier_;  ///< Chunks are sent under this bucket's name.
  std::uint64_t unit_ = 0;
  std::uint64_t chunks_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::size_t fresh_bytes_ = 0;
  bool is_broken_ = false;
  bool is_overflown_ = false;
  bool was_shipped_ = false;
  std::set<BucketId> open_;
  std::map<BucketId, BucketWork> works_;
  std::vector<std::pair<BucketId, visitors::BucketDone>> waiting_;
};

}  // namespace

std::unique_ptr<visitors::Visitor> make_incremental_map_visitor(std::shared_ptr<TaskContext> shared,
                                                                visitors::VisitContext& context, TaskSpec spec,
                                                                std::unique_ptr<Application> application) {
  return std::make_unique<IncrementalMapVisitor>(std::move(shared), context, std::move(spec), std::move(application));
}

}  // namespace fjord::mapreduce
