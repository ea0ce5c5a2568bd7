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

/// The durability of a finished batch: it survives a crash of the process, or also a power loss.
enum class EngineDurability : std::uint8_t { Process, Sync };
/// Returns "process" or "sync".
std::string_view to_string(EngineDurability durability);

enum class DocumentSize : std::uint8_t { Small, Large };
/// Returns "small" or "large".
std::string_view to_string(DocumentSize size);

/// A document to be written; for a remove, header, body and stored are empty.
struct EngineWrite {
  BucketId bucket;
  GlobalId gid;
  Timestamp timestamp;
  std::string_view id;
  std::string_view header;
  std::string_view body;
  /// Timestamp, header and body in one piece (see StoredForm), which a key-value store takes without copying.
  std::string_view stored;
};

struct EngineKey {
  BucketId bucket;
  GlobalId gid;
};

/// A document that an engine returns. Its views are valid until the next call of the engine.
struct EngineDocument {
  GlobalId gid;
  Timestamp timestamp;
  std::string_view header;
  std::string_view body;
};

using DocumentSink = std::function<void(const EngineDocument&)>;

/// The condition of a selecting iteration.
struct EngineSelection {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::shared_ptr<const Selection> selection;
};

/// The value of a document in a key-value store; the key is the gid.
///
///     timestamp:u64 header_length:u32 header body
struct StoredForm {
  static void append(std::string& to, Timestamp timestamp, std::string_view header, std::string_view body);
  static constexpr std::size_t kPrefixBytes = 12;
  /// Errors: Corruption if the value is malformed.
  static Result<EngineDocument> read(std::string_view key, std::string_view value);
};

/// A storage engine as the benchmark driver sees it.
///
/// Threading: one thread calls; the engine may have threads of its own.
/// Lifetime: the destructor closes the engine.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;

  /// Opens the data in `directory`, which exists, or creates it. Errors: IoError, Corruption.
  virtual Status open(const std::string& directory, EngineDurability durability) = 0;
  /// Stores documents. On return all of them have the durability that `open` asked for.
  virtual Status put_batch(std::span<const EngineWrite> writes) = 0;
  virtual Status remove_batch(std::span<const EngineWrite> writes) = 0;
  /// Errors: NotFound, Corruption, IoError.
  virtual Result<EngineDocument> get(const EngineKey& key) = 0;
  /// Calls `sink` with every document once.
  virtual Status iterate(const DocumentSink& sink) = 0;
  /// Calls `sink` with every matching document. The default reads all documents and evaluates the selection on each.
  virtual Status iterate(const EngineSelection& selection, const DocumentSink& sink);
  /// Finishes deferred work: flushes, compactions, checkpoints.
  virtual Status settle() = 0;
  /// No effect if the engine is not open.
  virtual Status close() = 0;
};

/// An engine and its settings.
struct EngineConfiguration {
  std::string name;    ///< "rocksdb-tuned"
  std::string family;  ///< "rocksdb"
  std::string settings;
  std::function<std::unique_ptr<EngineUnderTest>(DocumentSize size)> make;
};

/// Returns all engines of this build, Fjord's first.
std::vector<EngineConfiguration> engine_configurations();

std::vector<EngineConfiguration> provider_configurations();
std::vector<EngineConfiguration> leveldb_configurations();
std::vector<EngineConfiguration> rocksdb_configurations();
std::vector<EngineConfiguration> wiredtiger_configurations();

}  // namespace fjord::bench
