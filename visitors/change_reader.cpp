#include "change_reader.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fjord/document/docblock.h"
#include "fjord/document/field_set.h"
#include "fjord/document/selection.h"
#include "fjord/storage/spi/token_entry.h"

namespace fjord::visitors {

/// The subscriber's selection and fields; shared with the stripes.
struct ChangeReader::Question {
  std::shared_ptr<const DocumentTypeRepo> types;
  Selection selection;
  std::optional<FieldSet> fields;

  static Result<Question> of(const rpc::ReadChanges& request, const rpc::ClusterSnapshot* snapshot,
                             std::int64_t now_seconds) {
    if (snapshot == nullptr) return Status(StatusCode::NotReady, "this node has no cluster state yet");
    if (snapshot->schema_version() < request.schema_version) {
      return Status(StatusCode::NotReady, "this node has an older schema version than the subscriber");
    }
    Question question;
    question.types = snapshot->types();
    FJORD_TRY_ASSIGN(question.selection, Selection::parse(request.selection, *question.types));
    if (question.selection.needs_now()) question.selection = question.selection.with_now(now_seconds);
    if (!request.field_set.empty()) {
      FJORD_TRY_ASSIGN(question.fields, FieldSet::parse(*question.types, request.field_set));
    }
    return question;
  }

  /// Adds an entry as the subscriber sees it. A document that does not match becomes a removed entry, because it may
  /// have matched before. Adds the steps of the selection to `steps`. Errors: Corruption; those of
  /// Selection::try_evaluate().
  Status add(const EntryView& entry, DocBlockBuilder& into, std::uint64_t& steps) const {
    if (entry.removed) {
      if (!spi::is_token_id(entry.id) && selection.evaluate_id(entry.id, 0, &steps) != Match::False) into.add(entry);
      return Status::ok();
    }
    const Result<DocumentView> view = DocumentView::open(*types, entry.header, entry.body);
    if (!view) return view.error();
    FJORD_TRY_ASSIGN(const Match match, selection.try_evaluate(*view, &steps));
    if (match == Match::True) {
      if (!fields) {
        into.add(entry);
        return Status::ok();
      }
      EncodedDocument buffer;
      FJORD_TRY_ASSIGN(const ProjectedDocument part, fields->project(entry.header, entry.body, buffer));
      EntryView projected = entry;
      projected.header = part.header;
      projected.body = part.body;
      into.add(projected);
    } else if (selection.evaluate_id(view->id(), 0, &steps) != Match::False) {
      into.add({.gid = entry.gid,
                .timestamp = entry.timestamp,
                .removed = true,
                .id = view->id(),
                .header = {},
                .body = {}});
    }
    return Status::ok();
  }
};

namespace {

std::uint64_t hash_of(const spi::EntryMeta& entry) {
  return spi::entry_hash(entry.gid, entry.timestamp, entry.removed);
}

/// The metadata of a bucket, split at a subscriber's position `after`.
struct Past {
  std::uint64_t checksum = 0;         ///< Checksum of the entries up to `after`.
  std::vector<spi::EntryMeta> fresh;  ///< Entries after `after` up to `until`, in ascending order of timestamp.
};

Result<Past> look_at(spi::PersistenceProvider& provider, BucketId bucket, std::uint64_t after, std::uint64_t until) {
  Past past;
  FJORD_TRY(provider.for_each_entry(bucket, [&](const spi::EntryMeta& entry) {
    if (entry.timestamp.us <= after) {
      past.checksum += hash_of(entry);
    } else if (entry.timestamp.us <= until) {
      past.fresh.push_back(entry);
    }
  }));
  std::sort(past.fresh.begin(), past.fresh.end(), [](const spi::EntryMeta& a, const spi::EntryMeta& b) {
    return std::tie(a.timestamp, a.gid) < std::tie(b.timestamp, b.gid);
  });
  return past;
}

/// An iteration reports at its end that a replica is damaged; this iteration returns no entries.
Status check_whole(spi::PersistenceProvider& provider, BucketId bucket) {
  spi::IterateOptions nothing;
  nothing.parts = spi::Parts::IdOnly;
  nothing.from = Timestamp{std::numeric_limits<std::uint64_t>::max()};
  FJORD_TRY_ASSIGN(const auto iterator, provider.iterate(bucket, nothing));
  const Result<bool> more = iterator->visit([](const EntryView&) { return true; });
  return more.status();
}

/// Reads entries until the block is full or the selection has taken a turn. Entries with equal timestamps stay
/// together. Returns the number of entries.
template <typename Question>
Result<std::size_t> read_fresh(spi::PersistenceProvider& provider, BucketId bucket, const Past& past,
                               const Question& question, std::size_t bytes_max, DocBlockBuilder& into) {
  constexpr std::size_t kAtOnce = 64;
  std::size_t at = 0;
  std::uint64_t steps = 0;
  const auto has_room = [&] { return into.size() < bytes_max && steps < Selection::kPauseSteps; };
  const auto is_boundary = [&] {
    return at == 0 || at == past.fresh.size() || past.fresh[at - 1].timestamp != past.fresh[at].timestamp;
  };
  while (at < past.fresh.size() && (has_room() || !is_boundary())) {
    const std::size_t wanted = has_room() ? std::min(kAtOnce, past.fresh.size() - at) : 1;
    std::vector<GlobalId> gids;
    for (std::size_t i = 0; i < wanted; ++i) gids.push_back(past.fresh[at + i].gid);
    DocBlockBuilder stored;
    FJORD_TRY_ASSIGN(const std::size_t done, provider.read_entries(bucket, gids, stored, bytes_max));
    at += done;
    const std::string bytes = stored.take();
    DocBlockReader reader(bytes);
    while (const auto entry = reader.next()) FJORD_TRY(question.add(*entry, into, steps));
    if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  }
  return at;
}

template <typename Question>
Status read_bucket(spi::PersistenceProvider& provider, const rpc::ChangesWanted& wanted, const Question& question,
                   std::size_t bytes_max, rpc::BucketChanges& out) {
  FJORD_TRY_ASSIGN(const ReplicaSet set, provider.replica_set(wanted.bucket));
  if (set.epoch == 0 || set.epoch != wanted.epoch) {
    return {StatusCode::NotReady, wanted.bucket.to_string() + " has another replica set here"};
  }
  FJORD_TRY(check_whole(provider, wanted.bucket));
  FJORD_TRY_ASSIGN(const BucketInfo info, provider.bucket_info(wanted.bucket));
  FJORD_TRY_ASSIGN(const spi::Forgotten forgotten, provider.forgotten(wanted.bucket));
  // The newest timestamp in the bucket also bounds the read: a distributor that lost its state continues from there.
  const std::uint64_t until = std::min(wanted.until_us, info.max_timestamp_us);
  out.after_us = wanted.after_us;
  FJORD_TRY_ASSIGN(Past past, look_at(provider, wanted.bucket, out.after_us, until));
  // The subscriber's checksum includes entries that were forgotten since, so their checksum is added here.
  const bool may_have_gaps = out.after_us != 0 && wanted.seen_epoch != wanted.epoch &&
                             past.checksum + forgotten.checksum != wanted.seen_checksum;
  out.horizon_us = forgotten.removes.us;
  // The subscriber must begin again: a remove that it has not seen may have arrived here late and be dropped already.
  if (may_have_gaps && out.horizon_us > wanted.seen_horizon_us) {
    out.resync = true;
    return Status::ok();
  }
  if (may_have_gaps) {
    out.again = true;
    out.after_us = 0;
    FJORD_TRY_ASSIGN(past, look_at(provider, wanted.bucket, 0, until));
  }
  DocBlockBuilder block;
  FJORD_TRY_ASSIGN(const std::size_t count, read_fresh(provider, wanted.bucket, past, question, bytes_max, block));
  // The engine skips entries that it finds damaged while reading; the checksum would include them.
  FJORD_TRY_ASSIGN(const bool is_damaged, provider.is_damaged(wanted.bucket));
  if (is_damaged) return {StatusCode::Corruption, wanted.bucket.to_string() + " has lost something here"};
  out.more = count < past.fresh.size();
  out.checksum = past.checksum + forgotten.checksum;
  for (std::size_t i = 0; i < count; ++i) out.checksum += hash_of(past.fresh[i]);
  out.after_us = out.more ? past.fresh[count - 1].timestamp.us : std::max(out.after_us, until);
  out.docblock = block.take();
  return Status::ok();
}

}  // namespace

struct ChangeReader::Call {
  rpc::ReadChanges request;
  rpc::Responder respond;
  std::shared_ptr<const Question> question;
  rpc::ReadChangesReply reply;
  std::size_t at = 0;
  std::size_t bytes = 0;
  std::size_t bytes_max = 0;
};

void ChangeReader::read(rpc::ReadChanges request, rpc::Responder respond) {
  Result<Question> question = Question::of(request, snapshot_.get().get(), clock_.wall_now().us / 1'000'000);
  if (!question) {
    rpc::ReadChangesReply reply;
    reply.status = question.error();
    respond(std::move(reply));
    return;
  }
  auto call = std::make_shared<Call>();
  call->bytes_max = request.max_bytes == 0 ? kBytesMax : std::min(request.max_bytes, kBytesMax);
  call->request = std::move(request);
  call->respond = std::move(respond);
  call->question = std::make_shared<const Question>(std::move(*question));
  next(std::move(call));
}

void ChangeReader::next(std::shared_ptr<Call> call) {
  if (call->at == call->request.buckets.size() || call->bytes >= call->bytes_max) {
    call->respond(std::move(call->reply));
    return;
  }
  const rpc::ChangesWanted& wanted = call->request.buckets[call->at];
  if (!wanted.bucket.is_valid()) {
    call->reply.status = Status(StatusCode::InvalidArgument, "not a bucket id: " + wanted.bucket.to_string());
    call->respond(std::move(call->reply));
    return;
  }
  // If the node is destroyed, the call is dropped without an answer.
  access_.on_stripe(wanted.bucket, [this, call, mailbox = mailbox_](spi::PersistenceProvider& provider) {
    const rpc::ChangesWanted& asked = call->request.buckets[call->at];
    rpc::BucketChanges found;
    found.bucket = asked.bucket;
    found.status = read_bucket(provider, asked, *call->question, call->bytes_max - call->bytes, found);
    call->bytes += found.docblock.size();
    call->reply.buckets.push_back(std::move(found));
    ++call->at;
    mailbox.post([this, call] { next(call); });
  });
}

}  // namespace fjord::visitors
