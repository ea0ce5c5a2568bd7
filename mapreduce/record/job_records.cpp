#include "fjord/mapreduce/job_records.h"

#include <atomic>
#include <map>
#include <type_traits>

#include "fjord/client/client.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/mapreduce/task_visitors.h"
#include "fjord/visitors/visitor_session.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

constexpr const char* kJobType = "fjord_job";
constexpr std::uint64_t kRecordLocation = 0x6a6f62;
constexpr int kRecord = 1;
constexpr int kRows = 2;
constexpr Duration kTimeout = seconds(5);

/// Switches idempotency keys off. They are not needed: the writer of a record reads the record if the outcome of a
/// write is unknown. And a document that is written all the time would collect many keys.
ClientOptions without_tokens(ClientOptions options) {
  options.make_tokens = false;
  return options;
}

std::string record_id(const std::string& job) {
  return "id:fjord:fjord_job:n=" + std::to_string(kRecordLocation) + ":" + job;
}
/// Results have a location of their own: the bucket of all records is scanned often and must stay small.
std::string rows_id(const std::string& job) {
  return "id:fjord:fjord_job:n=" + std::to_string(hash64(job) >> 1) + ":" + job + "/rows";
}

Result<EncodedDocument> document_of(const DocumentTypeRepo& types, const std::string& id, int kind,
                                    const JobRecordHeader& record, std::string content) {
  const DocumentType* type = types.find(kJobType);
  if (type == nullptr) return Status(StatusCode::NotReady, "there is no document type fjord_job yet");
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  Document document(*type, parsed);
  FJORD_TRY(document.set("job", record.job_id));
  FJORD_TRY(document.set("kind", std::int32_t{kind}));
  FJORD_TRY(document.set("revision", static_cast<std::int64_t>(record.revision)));
  FJORD_TRY(document.set("epoch", static_cast<std::int64_t>(record.epoch)));
  FJORD_TRY(document.set("owner", record.owner));
  FJORD_TRY(document.set("owner_id", static_cast<std::int64_t>(record.owner_id)));
  FJORD_TRY(document.set("finished_unix_us", record.finished_unix_us));
  FJORD_TRY(document.set("record", RawValue{std::move(content)}));
  return encode(document);
}

std::uint64_t number(const DocumentView& view, std::string_view field) {
  const auto slice = view.field(field);
  return slice ? static_cast<std::uint64_t>(slice->as_int64()) : 0;
}

std::string text(const DocumentView& view, std::string_view field) {
  const auto slice = view.field(field);
  return slice ? std::string(slice->as_string_view()) : std::string();
}

JobRecordHeader header_of(const DocumentView& view) {
  return {.job_id = text(view, "job"),
          .owner = text(view, "owner"),
          .owner_id = number(view, "owner_id"),
          .epoch = number(view, "epoch"),
          .revision = number(view, "revision"),
          .finished_unix_us = static_cast<std::int64_t>(number(view, "finished_unix_us"))};
}

/// Returns the content of a record or of results (FORMAT.md).
Result<std::string> content_of(const DocumentTypeRepo& types, std::string_view header, std::string_view body) {
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(types, header, body));
  const auto record = view.field("record");
  if (!record) return Status(StatusCode::Corruption, "the record of a job is empty");
  return std::string(record->as_string_view());
}

Result<JobRecordHeader> read_record(const DocumentTypeRepo& types, const EntryView& entry, JobRecordHeader*) {
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(types, entry.header, entry.body));
  return header_of(view);
}

Result<JobState> read_record(const DocumentTypeRepo& types, const EntryView& entry, JobState*) {
  FJORD_TRY_ASSIGN(const std::string content, content_of(types, entry.header, entry.body));
  return decode_job_state(content);
}

/// A visit of all records. `T` is what is read of each record: JobState or JobRecordHeader.
template <typename T>
struct Listing {
  using Done = UniqueFunction<void(Result<std::vector<T>>)>;

  visitors::Mailbox reply_to;
  Done done;
  std::map<std::string, T> found;

  void finish(const Status& status) {
    std::vector<T> all;
    for (auto& [id, record] : found) all.push_back(std::move(record));
    auto result = std::make_shared<Result<std::vector<T>>>(status ? Result<std::vector<T>>(std::move(all)) : status);
    reply_to.post([result, answer = std::make_shared<Done>(std::move(done))] { (*answer)(std::move(*result)); });
  }
  /// Leaves out records that cannot be read. A record that is read twice counts with its newest revision.
  void take(const DocumentTypeRepo& types, const std::string& block) {
    DocBlockReader reader(block);
    while (const auto entry = reader.next()) {
      auto record = read_record(types, *entry, static_cast<T*>(nullptr));
      if (!record) {
        log::warning("job", "a record cannot be read: {}", record.error().to_string());
        continue;
      }
      T& known = found[record->job_id];
      if (known.job_id.empty() || record->revision > known.revision) known = std::move(*record);
    }
  }
};

}  // namespace

/// Threading: sessions are confined to `executor_`; all else is callable from any thread.
class StoredJobRecords::Impl {
 public:
  Impl(ClientOptions options, Runtime& runtime, rpc::Transport& transport)
      : clock_(runtime.clock),
        transport_(transport),
        random_(runtime.random.fork()),
        executor_(runtime.scheduler.make_executor("job-records")),
        client_executor_(runtime.scheduler.make_executor("job-client")),
        mailbox_(*executor_),
        client_(without_tokens(std::move(options)), runtime, transport, *client_executor_),
        sink_(client_, kTaskPutTimeout) {}
  ~Impl() {
    mailbox_.close();
    end_executor(executor_);
    for (auto& [id, session] : sessions_) session->abandon();
  }

  DocumentSink& sink() { return sink_; }

  /// Calls `f(Status, types)`, at once or later on the client's executor.
  template <typename F>
  void with_types(F f) {
    if (const auto snapshot = client_.snapshot(); snapshot != nullptr && snapshot->types()->find(kJobType) != nullptr) {
      f(Status::ok(), snapshot->types());
      return;
    }
    client_.wait_ready(kTimeout, [this, f = std::move(f)](const Status& status) mutable {
      const auto snapshot = client_.snapshot();
      f(status, status ? snapshot->types() : nullptr);
    });
  }

  void put(std::string id, int kind, JobRecordHeader record, std::string content, std::string condition, bool create,
           visitors::Mailbox reply_to, Done<Status> done) {
    with_types(
        [this, id = std::move(id), kind, record = std::move(record), content = std::move(content),
         condition = std::move(condition), create, reply_to = std::move(reply_to),
         done = std::make_shared<Done<Status>>(std::move(done))](const Status& ready, const auto& types) mutable {
          const auto answer = [reply_to, done](Status status) {
            reply_to.post([done, status = std::move(status)]() mutable { (*done)(std::move(status)); });
          };
          if (!ready) return answer(ready);
          auto document = document_of(*types, id, kind, record, std::move(content));
          if (!document) return answer(document.error());
          rpc::Operation operation = put_operation(id, std::move(*document));
          operation.condition = std::move(condition);
          operation.create = create;
          operation.priority = rpc::Priority::High;
          client_.execute(std::move(operation), kTimeout,
                          [answer](OperationOutcome outcome) { answer(std::move(outcome.status)); });
        });
  }

  /// Reads the document `id` and passes its content to `done`.
  void get(std::string id, visitors::Mailbox reply_to, Done<Result<std::string>> done) {
    with_types(
        [this, id = std::move(id), reply_to = std::move(reply_to),
         done = std::make_shared<Done<Result<std::string>>>(std::move(done))](const Status& ready, const auto& types) {
          const auto answer = [reply_to, done](Result<std::string> content) {
            reply_to.post([done, shared = std::make_shared<Result<std::string>>(std::move(content))] {
              (*done)(std::move(*shared));
            });
          };
          if (!ready) return answer(ready);
          rpc::Operation operation = get_operation(id);
          operation.priority = rpc::Priority::High;
          client_.execute(std::move(operation), kTimeout, [answer, types](OperationOutcome outcome) {
            if (!outcome.is_ok()) return answer(outcome.status);
            answer(content_of(*types, outcome.header, outcome.body));
          });
        });
  }

  void remove(std::string id, std::string condition, visitors::Mailbox reply_to, Done<Status> done) {
    rpc::Operation operation = remove_operation(std::move(id));
    operation.condition = std::move(condition);
    operation.priority = rpc::Priority::Background;
    client_.execute(std::move(operation), kTimeout,
                    [reply_to = std::move(reply_to),
                     done = std::make_shared<Done<Status>>(std::move(done))](OperationOutcome outcome) {
                      reply_to.post([done, status = std::move(outcome.status)] { (*done)(status); });
                    });
  }

  template <typename T>
  void list(visitors::Mailbox reply_to, Done<Result<std::vector<T>>> done) {
    auto listing = std::make_shared<Listing<T>>();
    listing->reply_to = std::move(reply_to);
    listing->done = std::move(done);
    with_types([this, listing](const Status& ready, const auto& types) {
      if (!ready) return listing->finish(ready);
      mailbox_.post([this, listing, types] { begin_listing(listing, types); });
    });
  }

 private:
  template <typename T>
  void begin_listing(const std::shared_ptr<Listing<T>>& listing, const std::shared_ptr<const DocumentTypeRepo>& types) {
    if (const auto snapshot = client_.snapshot(); snapshot != nullptr) {
      if (const auto updated = snapshots_.update(snapshot->info()); !updated) return listing->finish(updated.error());
    }
    const auto snapshot = snapshots_.get();
    visitors::VisitorSessionOptions options;
    options.selection = std::string(kJobType) + ".kind == " + std::to_string(kRecord);
    options.buckets.emplace({BucketId(snapshot->distribution_bits(), kRecordLocation)});
    options.follow_bits = true;
    options.header_only = std::is_same_v<T, JobRecordHeader>;
    options.priority = rpc::Priority::High;
    options.deadline = kTimeout;
    options.poll_wait = milliseconds(200);
    const std::uint64_t id = next_session_++;
    visitors::VisitorSessionCallbacks callbacks;
    callbacks.on_docblock = [listing, types](BucketId, const std::string& block) { listing->take(*types, block); };
    callbacks.on_finished = [this, id, listing](const Status& status) {
      listing->finish(status);
      mailbox_.post([this, id] { sessions_.erase(id); });
    };
    auto session = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks), transport_,
                                                              snapshots_, clock_, random_.fork(), *executor_);
    session->start();
    sessions_[id] = std::move(session);
  }

  Clock& clock_;
  rpc::Transport& transport_;
  Random random_;
  rpc::SnapshotHolder snapshots_;
  std::uint64_t next_session_ = 1;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Executor> client_executor_;
  visitors::Mailbox mailbox_;
  std::map<std::uint64_t, std::unique_ptr<visitors::VisitorSession>> sessions_;
  AsyncClient client_;
  ClientSink sink_;
};

StoredJobRecords::StoredJobRecords(ClientOptions options, Runtime& runtime, rpc::Transport& transport)
    : impl_(std::make_unique<Impl>(std::move(options), runtime, transport)) {}
StoredJobRecords::~StoredJobRecords() = default;

void StoredJobRecords::read(std::string job, visitors::Mailbox reply_to, Done<Result<JobState>> done) {
  impl_->get(record_id(job), std::move(reply_to),
             [job, done = std::move(done)](const Result<std::string>& content) mutable {
               if (content) return done(decode_job_state(*content));
               // Users know jobs, not the documents that hold their records.
               const bool is_unknown = content.error().code() == StatusCode::NotFound;
               done(is_unknown ? Status(StatusCode::NotFound, "there is no job " + job) : content.error());
             });
}

void StoredJobRecords::write(JobState record, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) {
  // With `expected` 0 no stored record satisfies the condition, so the put succeeds only if it creates the document.
  const std::string condition =
      std::string(kJobType) + ".revision == " + (expected == 0 ? std::string("-1") : std::to_string(expected));
  const std::string id = record_id(record.job_id);
  std::string content = encode_job_state(record);
  impl_->put(id, kRecord, std::move(record), std::move(content), condition, expected == 0, std::move(reply_to),
             std::move(done));
}

void StoredJobRecords::remove(std::string job, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) {
  impl_->remove(record_id(job), std::string(kJobType) + ".revision == " + std::to_string(expected), std::move(reply_to),
                std::move(done));
}

void StoredJobRecords::list(visitors::Mailbox reply_to, Done<Result<std::vector<JobState>>> done) {
  impl_->list<JobState>(std::move(reply_to), std::move(done));
}

void StoredJobRecords::list_headers(visitors::Mailbox reply_to, Done<Result<std::vector<JobRecordHeader>>> done) {
  impl_->list<JobRecordHeader>(std::move(reply_to), std::move(done));
}

void StoredJobRecords::write_rows(std::string job, const JobRows& rows, visitors::Mailbox reply_to, Done<Status> done) {
  JobRecordHeader header;
  header.job_id = job;
  impl_->put(rows_id(job), kRows, std::move(header), encode_job_rows(rows), {}, false, std::move(reply_to),
             std::move(done));
}

void StoredJobRecords::read_rows(std::string job, visitors::Mailbox reply_to, Done<Result<JobRows>> done) {
  impl_->get(rows_id(job), std::move(reply_to), [done = std::move(done)](const Result<std::string>& content) mutable {
    done(content ? decode_job_rows(*content) : content.error());
  });
}

void StoredJobRecords::remove_rows(std::string job, visitors::Mailbox reply_to, Done<Status> done) {
  impl_->remove(rows_id(job), {}, std::move(reply_to), std::move(done));
}

DocumentSink& StoredJobRecords::sink() { return impl_->sink(); }

}  // namespace fjord::mapreduce
