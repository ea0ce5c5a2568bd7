#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "fjord/document/timestamp.h"

namespace fjord {

/// Priority of an operation: a busy cluster refuses and delays operations of low priority first.
enum class ClientPriority : std::uint8_t {
  Default,     ///< Normal; Background for visits without a limit.
  High,        ///< Refused last.
  Normal,      ///< A user waits for the answer.
  Background,  ///< No user waits: imports, exports.
};

/// Consistency of a read. Every read sees all writes that were acknowledged before the read began.
enum class ReadConsistency : std::uint8_t {
  Default,       ///< May also see a write that is still in flight.
  Linearizable,  ///< Sees only versions that all replicas have; waits for writes of the document in flight.
};

/// The failure that an acknowledged write must survive on a node.
enum class WriteDurability : std::uint8_t {
  Default,  ///< As the storage nodes are configured.
  Process,  ///< Survives a crash of the process.
  Sync,     ///< Survives a loss of power.
};

struct WriteOptions {
  /// A selection that must hold for the stored document, else TestAndSetFailed: "item.price == 3".
  std::string condition = {};
  /// The stored document must have this version, else TestAndSetFailed. Timestamp{0}: there must be no document.
  std::optional<Timestamp> required_version = {};
  /// For an update, and for a put with a condition: create the document if it does not exist.
  bool create = false;
  WriteDurability durability = WriteDurability::Default;
  ClientPriority priority = ClientPriority::Default;
  /// Key of an earlier attempt that ended InDoubt: both attempts together apply the write at most once, also if two
  /// programs make them. An attempt with a key that fails for a transient reason is InDoubt, too, because an earlier
  /// one may have succeeded. Empty: updates and conditional writes get a random key.
  std::string idempotency_key = {};
  Duration timeout{0};  ///< Time limit of the operation, with all retries; 0: the client's timeout.
};

struct ReadOptions {
  /// The fields to read: "title,year" of the document's type, or a field set such as "[id]"; empty: all.
  std::string fields = {};
  ReadConsistency consistency = ReadConsistency::Default;
  ClientPriority priority = ClientPriority::Default;
  /// Index of a storage node: the read returns the state of this node's replica alone. For comparing replicas. NotFound
  /// if the cluster has no such node.
  std::optional<std::uint16_t> node = {};
  Duration timeout{0};  ///< Time limit of the read, with all retries; 0: the client's timeout.
};

/// Whether a write took effect.
enum class WriteOutcome : std::uint8_t {
  Applied,
  NotApplied,  ///< The write had no effect; the status says why.
  InDoubt,     ///< The write was sent and its outcome is unknown. Retry it with its idempotency key.
};

/// Returns "applied", "not_applied" or "in_doubt".
std::string_view to_string(WriteOutcome outcome);

struct WriteResult {
  Status status;
  WriteOutcome outcome = WriteOutcome::NotApplied;
  Timestamp version;          ///< Version of the written document.
  bool existed = false;       ///< The document existed before.
  Timestamp current_version;  ///< With TestAndSetFailed: version of the stored document; 0: no document.
  std::string idempotency_key;

  explicit operator bool() const { return status.is_ok(); }
};

struct ReadResult {
  Status status;                     ///< NotFound if there is no such document.
  std::optional<Document> document;  ///< Set if the status is OK.
  Timestamp version;

  explicit operator bool() const { return status.is_ok(); }
  const Document* operator->() const { return &*document; }
  const Document& operator*() const { return *document; }
};

struct JsonResult {
  Status status;     ///< NotFound if there is no such document.
  std::string json;  ///< {"put": ID, "fields": {...}}; of get_fields_json() {...} alone.
  Timestamp version;

  explicit operator bool() const { return status.is_ok(); }
};

}  // namespace fjord
