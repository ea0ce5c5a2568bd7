#include "fjord/fleetcontroller/leveldb_state_store.h"

#include <atomic>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "cluster_record.h"
#include "fjord/cluster/cluster_state.h"
#include "fjord/common/coding.h"
#include "fjord/common/log.h"
#include "state_file.h"

namespace fjord::fleetcontroller {
namespace {

constexpr const char* kTermKey = "term";

Status from(const leveldb::Status& status) {
  if (status.ok()) return Status::ok();
  return {status.IsCorruption() ? StatusCode::Corruption : StatusCode::IoError, status.ToString()};
}

leveldb::WriteOptions synced() {
  leveldb::WriteOptions options;
  options.sync = true;
  return options;
}

std::string parent_of(const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

std::string key_of(std::string_view record) { return "record/" + std::string(record); }

std::string with_revision(std::uint64_t revision, std::string_view content) {
  std::string bytes;
  put_fixed<std::uint64_t>(bytes, revision);
  bytes.append(content);
  return bytes;
}

}  // namespace

struct LevelDbStateStore::Impl {
  Result<StoredRecord> read(std::string_view record) const {
    std::string bytes;
    leveldb::ReadOptions options;
    options.verify_checksums = true;
    const leveldb::Status status = db->Get(options, key_of(record), &bytes);
    if (status.IsNotFound()) return StoredRecord{};
    FJORD_TRY(from(status));
    ByteReader reader(bytes);
    StoredRecord stored;
    stored.revision = reader.fixed<std::uint64_t>();
    if (!reader.ok()) return Status(StatusCode::Corruption, "record " + std::string(record) + " is too short");
    stored.content = std::string(reader.rest());
    return stored;
  }

  Result<std::uint64_t> write(std::uint64_t of_term, std::string_view record, std::uint64_t expected,
                              std::string_view content) {
    if (of_term != term) {
      return Status(StatusCode::WrongDistribution,
                    "term " + std::to_string(of_term) + " is over; the newest is " + std::to_string(term));
    }
    FJORD_TRY_ASSIGN(const StoredRecord now, read(record));
    if (now.revision != expected) {
      return Status(StatusCode::TestAndSetFailed, "record " + std::string(record) + " has revision " +
                                                      std::to_string(now.revision) + ", not " +
                                                      std::to_string(expected));
    }
    FJORD_TRY(from(db->Put(synced(), key_of(record), with_revision(expected + 1, content))));
    return expected + 1;
  }

  Status next_term() {
    std::string bytes;
    const leveldb::Status found = db->Get({}, kTermKey, &bytes);
    if (!found.ok() && !found.IsNotFound()) return from(found);
    ByteReader reader(bytes);
    const std::uint64_t last = found.ok() ? reader.fixed<std::uint64_t>() : 0;
    bytes.clear();
    put_fixed<std::uint64_t>(bytes, std::max(last, term) + 1);
    FJORD_TRY(from(db->Put(synced(), kTermKey, bytes)));
    term = std::max(last, term) + 1;
    return Status::ok();
  }

  void lead(const std::shared_ptr<Impl>& self) {
    if (Status status = next_term(); !status) {
      log::error("controller", "cannot store a new term: {}", status.to_string());
      executor->post_after(seconds(1), [self] {
        if (!self->left) self->lead(self);
      });
      return;
    }
    on_change({term, name, true});
  }

  std::unique_ptr<leveldb::DB> db;
  std::string name;
  Executor* executor = nullptr;
  OnLeadership on_change;
  std::uint64_t term = 0;
  std::atomic<bool> left{false};
};

namespace {

/// Writes the records that correspond to an old state file. Does nothing if there is none. Errors: those of
/// load_state(); InvalidArgument; IoError.
Status take_over(Env& env, const std::string& directory, leveldb::DB& db) {
  FJORD_TRY_ASSIGN(const PersistedState old, load_state(env, directory));
  if (old == PersistedState{}) return Status::ok();
  FJORD_TRY_ASSIGN(const ClusterState state, ClusterState::parse(old.state));
  leveldb::WriteBatch batch;
  const SchemaRecord schemas{old.schema_version, old.schemas};
  batch.Put(key_of(kSchemaRecord), with_revision(1, encode(schemas)));
  ClusterRecord record;
  record.active.version = state.version();
  record.active.state = old.state;
  record.incarnations = old.incarnations;
  record.nodes.distribution_bits = state.bits();
  batch.Put(key_of(kClusterRecord), with_revision(1, encode(record)));
  log::info("controller", "took over the state file: cluster state {}, schemas {}", state.version(),
            old.schema_version);
  return from(db.Write(synced(), &batch));
}

}  // namespace

LevelDbStateStore::LevelDbStateStore(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
LevelDbStateStore::~LevelDbStateStore() { leave(); }

Result<std::unique_ptr<LevelDbStateStore>> LevelDbStateStore::open(Env& env, const std::string& directory) {
  FJORD_TRY(env.create_directories(directory));
  // Without this sync the new folder, with everything in it, could be lost in a power failure.
  FJORD_TRY(env.sync_directory(parent_of(directory)));
  auto impl = std::make_shared<Impl>();
  leveldb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.write_buffer_size = std::size_t{1} << 20;
  leveldb::DB* db = nullptr;
  FJORD_TRY(from(leveldb::DB::Open(options, directory + "/store", &db)).with_context(directory + "/store"));
  impl->db.reset(db);
  FJORD_TRY_ASSIGN(const StoredRecord cluster, impl->read(kClusterRecord));
  if (cluster.revision == 0) FJORD_TRY(take_over(env, directory, *db));
  return std::unique_ptr<LevelDbStateStore>(new LevelDbStateStore(std::move(impl)));
}

void LevelDbStateStore::campaign(const std::string& name, Executor& executor, OnLeadership on_change) {
  impl_->name = name;
  impl_->executor = &executor;
  impl_->on_change = std::move(on_change);
  resign();
}

void LevelDbStateStore::resign() {
  impl_->executor->post([impl = impl_] {
    if (!impl->left) impl->lead(impl);
  });
}

void LevelDbStateStore::leave() { impl_->left = true; }

void LevelDbStateStore::confirm(std::uint64_t term, OnConfirmed done) {
  impl_->executor->post([impl = impl_, term, done = std::move(done)] {
    if (impl->left) return;
    done(term == impl->term ? Status::ok()
                            : Status(StatusCode::WrongDistribution, "term " + std::to_string(term) + " is over"));
  });
}

void LevelDbStateStore::read(std::string_view record, OnRead done) {
  impl_->executor->post([impl = impl_, record = std::string(record), done = std::move(done)] {
    if (!impl->left) done(impl->read(record));
  });
}

void LevelDbStateStore::write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
                              OnWritten done) {
  impl_->executor->post([impl = impl_, term, record = std::string(record), expected, content = std::move(content),
                         done = std::move(done)] {
    if (!impl->left) done(impl->write(term, record, expected, content));
  });
}

}  // namespace fjord::fleetcontroller
