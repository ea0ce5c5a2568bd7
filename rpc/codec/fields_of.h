#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

/// `fields(visit, message)` calls `visit` with each member of a message and its number in api/fjord.thrift. The
/// generated message_fields.h has one for each message. It serves writing and reading. `visit(number, member)` leaves a
/// member out if it has the zero value of its type. A member with another default uses `visit.always`.
///
/// The wire type depends on the member's type: bool, enum and uint16_t (i32), larger integers and BucketId (i64),
/// string and GlobalId (binary), vector (list), optional (type of its value, absent if empty), all other types
/// (struct).
namespace fjord::rpc {

template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// True for a struct with fields() of its own: not a number, string, list, optional or Status.
template <typename T>
inline constexpr bool kIsMessage =
    !std::is_arithmetic_v<T> && !std::is_enum_v<T> && !std::is_same_v<T, std::string> && !std::is_same_v<T, BucketId> &&
    !std::is_same_v<T, GlobalId> && !std::is_same_v<T, Status> && !kIsVector<T> && !kIsOptional<T>;

}  // namespace fjord::rpc
