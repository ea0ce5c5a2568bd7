#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"
#include "fjord/document/selection.h"
#include "fjord/document/timestamp.h"

namespace fjord::bench {

/// When a batch counts as done: when a crash of the process cannot undo it, or when a loss of power cannot either.
enum class EngineDurability : std::uint8_t { Process, Sync };
/// "process", "sync".
std::string_view to_string(EngineDurability durability);

enum class DocumentSize : std::uint8_t { Small, Large };
/// "small", "large".
std::string_view to_string(DocumentSize size);

/// A document on its way into an engine; for a remove, header, body and stored are empty.
struct EngineWrite {
  BucketId bucket;
  GlobalId gid;
  Timestamp timestamp;
  std::string_view id;
  std::string_view header;
  std::string_view body;
  /// Timestamp, header and body in one piece (see StoredForm): what a store of keys and values takes without copying.
  std::string_view stored;
};

struct EngineKey {
  BucketId bucket;
  GlobalId gid;
};

/// Views that live until the next call of the engine.
struct EngineDocument {
  GlobalId gid;
  Timestamp timestamp;
  std::string_view header;
  std::string_view body;
};

using DocumentSink = std::function<void(const EngineDocument&)>;

/// What an iteration selects by.
struct EngineSelection {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::shared_ptr<const Selection> selection;
};

/// The value under which a document is kept in a store of keys and values; the key is the gid.
///
///     timestamp:u64 header_length:u32 header body
struct StoredForm {
  static void append(std::string& to, Timestamp timestamp, std::string_view header, std::string_view body);
  static constexpr std::size_t kPrefixBytes = 12;
  /// Errors: Corruption.
  static Result<EngineDocument> read(std::string_view key, std::string_view value);
};

/// A storage engine as the driver sees it.
///
/// Threading: one thread calls; the engine may have others of its own.
/// Lifetime: destroying it closes it.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;

  /// Opens what is in `directory` (which exists), or makes it. Errors: IoError, Corruption.
  virtual Status open(const std::string& directory, EngineDurability durability) = 0;
  /// Stores documents; all of them are as durable as `open` was asked for when it returns.
  virtual Status put_batch(std::span<const EngineWrite> writes) = 0;
  virtual Status remove_batch(std::span<const EngineWrite> writes) = 0;
  /// Errors: NotFound, Corruption, IoError.
  virtual Result<EngineDocument> get(const EngineKey& key) = 0;
  /// Gives every document once.
  virtual Status iterate(const DocumentSink& sink) = 0;
  /// Gives every document that matches. Unless an engine knows better: reads all and evaluates in place.
  virtual Status iterate(const EngineSelection& selection, const DocumentSink& sink);
  /// Lets the work finish that the engine has put off: flushes, compactions, checkpoints.
  virtual Status settle() = 0;
  /// Fine if it is not open.
  virtual Status close() = 0;
};

/// An engine with its settings.
struct EngineConfiguration {
  std::string name;    ///< "rocksdb-tuned"
  std::string family;  ///< "rocksdb"
  std::string settings;
  std::function<std::unique_ptr<EngineUnderTest>(DocumentSize size)> make;
};

/// All that were built in, those of Fjord first.
std::vector<EngineConfiguration> engine_configurations();

std::vector<EngineConfiguration> provider_configurations();
std::vector<EngineConfiguration> leveldb_configurations();
std::vector<EngineConfiguration> rocksdb_configurations();
std::vector<EngineConfiguration> wiredtiger_configurations();

}  // namespace fjord::bench
