#include <fmt/format.h>
#include <wiredtiger.h>

#include "engine_under_test.h"

namespace fjord::bench {
namespace {

constexpr const char* kTable = "table:documents";

struct WiredtigerSettings {
  std::string connection;
  std::string table;
};

Status from(int error, std::string_view what) {
  if (error == 0) return Status::ok();
  const StatusCode code = error == WT_NOTFOUND ? StatusCode::NotFound : StatusCode::IoError;
  return Status(code, fmt::format("{}: {}", what, wiredtiger_strerror(error)));
}

WT_ITEM item(std::string_view bytes) {
  WT_ITEM made = {};
  made.data = bytes.data();
  made.size = bytes.size();
  return made;
}
std::string_view view(const WT_ITEM& item) { return {static_cast<const char*>(item.data), item.size}; }

class WiredtigerEngine : public EngineUnderTest {
 public:
  using EngineUnderTest::iterate;

  explicit WiredtigerEngine(WiredtigerSettings settings) : settings_(std::move(settings)) {}
  ~WiredtigerEngine() override { (void)close_connection(); }

  Status open(const std::string& directory, EngineDurability durability) override {
    // Without the log only the last checkpoint would survive a crash. `none` writes each commit's record to the file
    // without a sync; without transaction_sync it would stay in a buffer of the process.
    const std::string options =
        fmt::format("create,log=(enabled=true),transaction_sync=(enabled=true,method={}){}",
                    durability == EngineDurability::Sync ? "fsync" : "none", settings_.connection);
    FJORD_TRY(from(wiredtiger_open(directory.c_str(), nullptr, options.c_str(), &connection_), "open"));
    FJORD_TRY(from(connection_->open_session(connection_, nullptr, nullptr, &session_), "open a session"));
    const std::string table = "key_format=u,value_format=u" + settings_.table;
    FJORD_TRY(from(session_->create(session_, kTable, table.c_str()), "create the table"));
    return from(session_->open_cursor(session_, kTable, nullptr, nullptr, &cursor_), "open a cursor");
  }

  Status put_batch(std::span<const EngineWrite> writes) override {
    return transact([&] {
      for (const EngineWrite& write : writes) {
        const WT_ITEM key = item(write.gid.view());
        const WT_ITEM value = item(write.stored);
        cursor_->set_key(cursor_, &key);
        cursor_->set_value(cursor_, &value);
        if (const int error = cursor_->insert(cursor_); error != 0) return error;
      }
      return 0;
    });
  }

  Status remove_batch(std::span<const EngineWrite> writes) override {
    return transact([&] {
      for (const EngineWrite& write : writes) {
        const WT_ITEM key = item(write.gid.view());
        cursor_->set_key(cursor_, &key);
        if (const int error = cursor_->remove(cursor_); error != 0) return error;
      }
      return cursor_->reset(cursor_);
    });
  }

  Result<EngineDocument> get(const EngineKey& key) override {
    const WT_ITEM wanted = item(key.gid.view());
    cursor_->set_key(cursor_, &wanted);
    FJORD_TRY(from(cursor_->search(cursor_), "search"));
    WT_ITEM value = {};
    FJORD_TRY(from(cursor_->get_value(cursor_, &value), "get_value"));
    return StoredForm::read(key.gid.view(), view(value));
  }

  Status iterate(const DocumentSink& sink) override {
    FJORD_TRY(from(cursor_->reset(cursor_), "reset"));
    int error = 0;
    while ((error = cursor_->next(cursor_)) == 0) {
      WT_ITEM key = {};
      WT_ITEM value = {};
      FJORD_TRY(from(cursor_->get_key(cursor_, &key), "get_key"));
      FJORD_TRY(from(cursor_->get_value(cursor_, &value), "get_value"));
      FJORD_TRY_ASSIGN(const EngineDocument document, StoredForm::read(view(key), view(value)));
      sink(document);
    }
    return error == WT_NOTFOUND ? Status::ok() : from(error, "next");
  }

  Status settle() override {
    FJORD_TRY(from(cursor_->reset(cursor_), "reset"));
    return from(session_->checkpoint(session_, nullptr), "checkpoint");
  }

  Status close() override { return close_connection(); }

 private:
  template <typename Writes>
  Status transact(const Writes& writes) {
    FJORD_TRY(from(session_->begin_transaction(session_, nullptr), "begin"));
    if (const int error = writes(); error != 0) {
      (void)session_->rollback_transaction(session_, nullptr);
      return from(error, "write");
    }
    return from(session_->commit_transaction(session_, nullptr), "commit");
  }

  Status close_connection() {
    if (connection_ == nullptr) return Status::ok();
    WT_CONNECTION* const connection = connection_;
    connection_ = nullptr;
    return from(connection->close(connection, nullptr), "close");
  }

  const WiredtigerSettings settings_;
  WT_CONNECTION* connection_ = nullptr;
  WT_SESSION* session_ = nullptr;  // The connection owns session and cursor.
  WT_CURSOR* cursor_ = nullptr;
};

WiredtigerSettings tuned(DocumentSize size) {
  const std::string connection =
      ",cache_size=8GB,eviction=(threads_min=1,threads_max=2),eviction_dirty_target=60,"
      "eviction_dirty_trigger=80";
  if (size == DocumentSize::Small) {
    return {.connection = connection,
            .table =
                ",leaf_page_max=32KB,internal_page_max=16KB,leaf_value_max=16KB,memory_page_max=10MB,split_pct=90,"
                "prefix_compression=false"};
  }
  return {.connection = connection,
          .table =
              ",leaf_page_max=1MB,internal_page_max=16KB,leaf_value_max=512KB,memory_page_max=32MB,split_pct=90,"
              "prefix_compression=false"};
}

}  // namespace

std::vector<EngineConfiguration> wiredtiger_configurations() {
  return {{.name = "wiredtiger-default",
           .family = "wiredtiger",
           .settings = "all defaults (100 MB cache), with the log, which the durabilities need",
           .make = [](DocumentSize) { return std::make_unique<WiredtigerEngine>(WiredtigerSettings{}); }},
          {.name = "wiredtiger-tuned",
           .family = "wiredtiger",
           .settings =
               "cache 8 GB, which holds all documents; up to 2 eviction threads, which leave changed pages alone up "
               "to 60 % of the cache; no prefix compression; leaf pages of 32 KB (large documents: 1 MB, values "
               "up to 512 KB in the page); log files of 100 MB as by default; "
               "settled by a checkpoint",
           .make = [](DocumentSize size) { return std::make_unique<WiredtigerEngine>(tuned(size)); }}};
}

}  // namespace fjord::bench
