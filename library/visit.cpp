#include "fjord/library/visit.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "decode_entry.h"
#include "fjord/document/document.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/given_documents.h"
#include "projection.h"
#include "visit_stream.h"

namespace fjord {

namespace {

constexpr std::uint64_t kSlicesMax = 1024;

rpc::Priority wire(ClientPriority priority) {
  return priority == ClientPriority::Default ? rpc::Priority::Background : static_cast<rpc::Priority>(priority);
}

/// Returns the session options of a visit. Errors: InvalidArgument.
Result<visitors::VisitorSessionOptions> session_options(const VisitOptions& options, const DocumentQuery& query) {
  if (options.slices == 0 || options.slices > kSlicesMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("slices is {}: expected 1 to {}", options.slices, kSlicesMax));
  }
  if (options.visitor.starts_with("mapreduce.")) {
    return Status(StatusCode::InvalidArgument, fmt::format("the visitor \"{}\" is for jobs only", options.visitor));
  }
  visitors::VisitorSessionOptions session;
  session.selection = query.selection;
  session.field_set = options.ids_only ? "[id]" : query.field_set;
  session.follow_bits = true;
  session.include_removed = options.include_removed;
  session.snapshot = options.snapshot;
  session.from = options.from;
  session.to = options.to;
  session.priority = wire(options.priority);
  session.visitors_per_node = options.visitors_per_node;
  session.buckets_per_visitor = options.buckets_per_visitor;
  session.buckets_at_once = options.buckets_at_once;
  session.library = options.visitor;
  for (const auto& [name, value] : options.parameters) session.parameters.push_back({name, value});
  session.no_progress_limit = options.no_progress_limit;
  if (!options.slice) return session;
  if (options.slices > 1) return Status(StatusCode::InvalidArgument, "slice and slices exclude each other");
  if (options.slice->count == 0 || options.slice->index >= options.slice->count) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("there is no slice {} of {}", options.slice->index, options.slice->count));
  }
  session.slice = visitors::PositionRange::slice(options.slice->index, options.slice->count);
  return session;
}

}  // namespace

class Visit::Impl {
 public:
  Impl(ClientCore& core, const VisitOptions& options) : core_(core), status_(open(options)) {}

  /// The destructor resumes a waiting coroutine, which may use the visit until it waits again.
  ~Impl() {
    if (stream_ == nullptr) return;
    core_.run([this] {
      if (!is_over()) status_ = Status(StatusCode::Cancelled, "the visit was destroyed");
      stream_.reset();
    });
  }

  /// What to do when nothing has arrived.
  enum class Absent { Wait, Return };

  const Document* next(Absent absent) {
    while (true) {
      const std::optional<EntryView> entry = next_entry(absent);
      if (!entry) return nullptr;
      if (entry->removed || entry->header.empty()) continue;
      Result<Document> document = decode_entry(core_, types_, projection_, *entry);
      if (document) {
        document_ = std::move(*document);
        return &*document_;
      }
      fail(document.error());
    }
  }

  std::optional<EntryView> next_entry(Absent absent) {
    while (is_at_item(absent)) {
      std::optional<EntryView> entry = entry_of_item();
      if (!entry) continue;
      version_ = entry->timestamp;
      return entry;
    }
    return std::nullopt;
  }

  std::optional<DocumentBlock> next_block(Absent absent) {
    while (is_at_item(absent)) {
      const bool is_whole = reader_.remaining() == item_.docblock.size();
      std::size_t entries = 0;
      DocBlockBuilder left;  // What is given of a block of which a part was given before.
      while (reader_.remaining() != 0 && reader_.ok()) {
        const std::optional<EntryView> entry = entry_of_item();
        if (!entry) continue;
        ++entries;
        version_ = entry->timestamp;
        if (!is_whole || before_.size() != 0) left.add(*entry);
      }
      if (!reader_.ok() || entries == 0) continue;
      reader_ = DocBlockReader(std::string_view());
      return DocumentBlock(left.empty() ? std::move(item_.docblock) : left.take(), entries, decoder_);
    }
    return std::nullopt;
  }

  bool is_over() const { return is_over_ || !status_; }
  Pending<Status> ready() {
    if (!is_over() && reader_.remaining() == 0) return stream_->ready();
    const auto state = std::make_shared<detail::PendingState<Status>>(nullptr);
    state->set(Status::ok());
    return Pending<Status>(state);
  }
  bool would_wait() const { return status_.is_ok() && !is_over_ && reader_.remaining() == 0 && stream_->is_empty(); }

  std::function<std::string()> cursor_of_now() const {
    std::vector<GlobalId> given;
    for (const auto& [bucket, gids] : open_buckets_) given.insert(given.end(), gids.begin(), gids.end());
    return [cursor = VisitCursor{slice_cursors_, before_}, given = std::move(given)] {
      VisitCursor whole = cursor;
      for (const GlobalId& gid : given) whole.given.add(gid);
      return whole.to_text();
    };
  }
  std::string bucket_cursor() const { return VisitCursor{slice_cursors_, before_}.to_text(); }

  VisitStatistics statistics() const {
    VisitStatistics result;
    if (stream_ == nullptr) return result;
    visitors::VisitProgress progress = stream_->progress();
    result.buckets_total = progress.buckets_total;
    result.buckets_done = progress.buckets_done;
    result.buckets_repeated = progress.buckets_repeated;
    result.documents_read = progress.documents_read;
    result.documents_matched = progress.documents_matched;
    result.bytes = progress.docblock_bytes;
    result.buckets_skipped_by_selection = progress.skipped_by_selection;
    result.buckets_skipped_by_slice = progress.skipped_by_slice;
    result.buckets_skipped_as_done = progress.skipped_as_done;
    result.is_located = progress.located;
    result.buckets_by_node = std::move(progress.buckets_by_node);
    return result;
  }

  void stop() {
    if (stream_ != nullptr) stream_->stop(Status(StatusCode::Cancelled, "the visit was stopped"));
  }

  const Status& status() const { return status_; }
  Timestamp version() const { return version_; }
  const std::shared_ptr<const DocumentTypeRepo>& types() const { return types_; }

 private:
  Status open(const VisitOptions& options) {
    FJORD_TRY(core_.refresh());
    types_ = core_.types();
    gives_documents_ = options.visitor == "dump";
    const std::string fields = fmt::format("{}", fmt::join(options.fields, ","));
    FJORD_TRY_ASSIGN(DocumentQuery query, DocumentQuery::make(options.type, options.selection, fields, *types_));
    FJORD_TRY_ASSIGN(const visitors::VisitorSessionOptions session, session_options(options, query));
    projection_ = Projection(std::move(query.names));
    decoder_ = std::make_shared<EntryDecoder>(core_, types_, projection_);
    std::vector<visitors::VisitorSessionOptions> sessions(options.slices, session);
    if (options.slices > 1) {
      for (std::uint64_t k = 0; k < options.slices; ++k) {
        sessions[k].slice = visitors::PositionRange::slice(k, options.slices);
      }
    }
    for (const auto& one : sessions) slice_cursors_.push_back({one.fingerprint(), {}});
    if (!options.resume.empty()) FJORD_TRY(resume(options.resume, sessions));
    slices_ = sessions.size() > 1 ? 0 : 1;
    whole_ = session.slice;
    stream_ = std::make_unique<VisitStream>(core_, std::move(sessions), options.buffer_bytes);
    return stream_->start();
  }

  Status resume(const std::string& text, std::vector<visitors::VisitorSessionOptions>& sessions) {
    auto cursor = VisitCursor::parse(text);
    if (!cursor) return cursor.error().with_context("resume");
    if (cursor->slices.size() != sessions.size()) {
      return {StatusCode::InvalidArgument, fmt::format("resume: the cursor is of a visit in {} slices, this one has {}",
                                                       cursor->slices.size(), sessions.size())};
    }
    for (std::size_t k = 0; k < sessions.size(); ++k) {
      if (cursor->slices[k].question != slice_cursors_[k].question) {
        return {StatusCode::InvalidArgument,
                "resume: the cursor is of a visit with another selection, other fields or times"};
      }
      sessions[k].resume = cursor->slices[k];
    }
    slice_cursors_ = std::move(cursor->slices);
    before_ = std::move(cursor->given);
    return Status::ok();
  }

  /// Returns the intersection of the bucket and its slice.
  visitors::PositionRange part_of(const VisitedBucket& visited) const {
    const visitors::PositionRange slice =
        slices_ == 1 ? whole_ : visitors::PositionRange::slice(visited.slice, slice_cursors_.size());
    const visitors::PositionRange bucket = visitors::PositionRange::of(visited.bucket);
    return {std::max(bucket.first, slice.first), std::min(bucket.last, slice.last)};
  }

  /// Moves to an item with entries that were not taken yet. Returns false if there is none.
  bool is_at_item(Absent absent) {
    while (status_.is_ok() && !is_over_) {
      if (!reader_.ok()) {
        fail(Status(StatusCode::Corruption, "a block of documents is malformed"));
      } else if (reader_.remaining() != 0) {
        return true;
      } else if (absent == Absent::Return && stream_->is_empty()) {
        return false;
      } else if (!next_item()) {
        is_over_ = true;
      }
    }
    return false;
  }

  /// Takes the next entry of the item and counts it as given. Returns nothing if it was given before the resume, or is
  /// malformed.
  std::optional<EntryView> entry_of_item() {
    std::optional<EntryView> entry = reader_.next();
    if (!entry || !gives_documents_) return entry;
    if (before_.size() != 0 && before_.contains(entry->gid)) return std::nullopt;
    given_->push_back(entry->gid);
    return entry;
  }

  /// Moves to the next item. Returns false at the end of the stream.
  bool next_item() {
    if (!stream_->pop(item_)) {
      status_ = stream_->result();
      return false;
    }
    if (item_.kind == VisitItem::Kind::Documents) {
      given_ = &open_buckets_[item_.from];
      reader_ = DocBlockReader(item_.docblock);
      return true;
    }
    open_buckets_.erase(item_.from);
    if (before_.size() != 0) before_.complete(part_of(item_.from));
    slice_cursors_[item_.from.slice].done.add(visitors::PositionRange::of(item_.from.bucket));
    return true;
  }

  void fail(const Status& status) {
    status_ = status;
    stop();
  }

  ClientCore& core_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  Projection projection_;
  std::shared_ptr<EntryDecoder> decoder_;               ///< For blocks.
  std::vector<visitors::SessionCursor> slice_cursors_;  ///< One for each slice: the buckets that next() has completed.
  GivenDocuments before_;                               ///< Documents given before the resume.
  std::map<VisitedBucket, std::vector<GlobalId>> open_buckets_;  ///< Documents given of incomplete buckets.
  std::vector<GlobalId>* given_ = nullptr;                       ///< Element of open_buckets_ for the current block.
  bool gives_documents_ = true;                                  ///< The visitor is "dump", which gives each document
                                                                 ///< itself.
  std::size_t slices_ = 1;
  visitors::PositionRange whole_;
  std::unique_ptr<VisitStream> stream_;
  VisitItem item_;
  DocBlockReader reader_{std::string_view()};
  std::optional<Document> document_;
  Timestamp version_{0};
  bool is_over_ = false;
  Status status_;  ///< Last member: its initialiser open() sets the other members.
};

Result<Document> DocumentBlock::decode(const EntryView& entry) const { return decoder_->decode(entry); }

Visit::Visit(ClientCore& core, VisitOptions options) : impl_(std::make_unique<Impl>(core, options)) {}
Visit::Visit(Visit&&) noexcept = default;
Visit& Visit::operator=(Visit&&) noexcept = default;
Visit::~Visit() = default;

Next<Visit, Document> Visit::next() { return Next<Visit, Document>(*this); }
const Document* Visit::wait_next() { return impl_->next(Impl::Absent::Wait); }
std::optional<EntryView> Visit::next_entry() { return impl_->next_entry(Impl::Absent::Wait); }
std::optional<DocumentBlock> Visit::next_block() { return impl_->next_block(Impl::Absent::Wait); }
const Document* Visit::try_next() { return impl_->next(Impl::Absent::Return); }
std::optional<EntryView> Visit::try_next_entry() { return impl_->next_entry(Impl::Absent::Return); }
std::optional<DocumentBlock> Visit::try_next_block() { return impl_->next_block(Impl::Absent::Return); }
bool Visit::is_over() const { return impl_->is_over(); }
Pending<Status> Visit::ready() { return impl_->ready(); }
bool Visit::would_wait() const { return impl_->would_wait(); }
Timestamp Visit::version() const { return impl_->version(); }
std::shared_ptr<const DocumentTypeRepo> Visit::types() const { return impl_->types(); }
const Status& Visit::status() const { return impl_->status(); }
std::string Visit::cursor() const { return impl_->cursor_of_now()(); }
std::function<std::string()> Visit::cursor_of_now() const { return impl_->cursor_of_now(); }
std::string Visit::bucket_cursor() const { return impl_->bucket_cursor(); }
VisitStatistics Visit::statistics() const { return impl_->statistics(); }
void Visit::stop() { impl_->stop(); }

}  // namespace fjord
