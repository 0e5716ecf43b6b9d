// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Many calls in one, for a chain that has no Multicall3 of its own
/// @notice Speaks the ABI of the contract at 0xcA11bde05977b3631167028862bE2a173976CA11, which clients look for there.
/// @dev No storage, no immutables and no constructor: the runtime code works at whatever address it is placed.
contract Multicall3 {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Call3Value {
        address target;
        bool allowFailure;
        uint256 value;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    /// @notice Call number `index`, which was not allowed to fail, failed with `returnData`.
    error CallFailed(uint256 index, bytes returnData);

    /// @notice The calls carry `required` wei in all, `provided` came along.
    error ValueMismatch(uint256 required, uint256 provided);

    /// @notice Makes the calls in order and returns what each answered.
    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            Call3 calldata call = calls[i];
            (bool success, bytes memory returnData) = call.target.call(call.callData);
            if (!success && !call.allowFailure) revert CallFailed(i, returnData);
            results[i] = Result(success, returnData);
        }
    }

    /// @notice Makes the calls in order and returns what each answered; with `requireSuccess` none may fail.
    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        external
        payable
        returns (Result[] memory results)
    {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            (bool success, bytes memory returnData) = calls[i].target.call(calls[i].callData);
            if (!success && requireSuccess) revert CallFailed(i, returnData);
            results[i] = Result(success, returnData);
        }
    }

    /// @notice As `aggregate3`, each call with its own wei; the sum must be what came along.
    function aggregate3Value(Call3Value[] calldata calls) external payable returns (Result[] memory results) {
        uint256 required = 0;
        for (uint256 i = 0; i < calls.length; ++i) {
            required += calls[i].value;
        }
        if (required != msg.value) revert ValueMismatch(required, msg.value);

        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            Call3Value calldata call = calls[i];
            (bool success, bytes memory returnData) = call.target.call{value: call.value}(call.callData);
            if (!success && !call.allowFailure) revert CallFailed(i, returnData);
            results[i] = Result(success, returnData);
        }
    }

    function getBlockHash(uint256 blockNumber) external view returns (bytes32 blockHash) {
        return blockhash(blockNumber);
    }

    function getLastBlockHash() external view returns (bytes32 blockHash) {
        return blockhash(block.number - 1);
    }

    function getBlockNumber() external view returns (uint256 blockNumber) {
        return block.number;
    }

    function getCurrentBlockTimestamp() external view returns (uint256 timestamp) {
        return block.timestamp;
    }

    function getCurrentBlockGasLimit() external view returns (uint256 gaslimit) {
        return block.gaslimit;
    }

    function getCurrentBlockCoinbase() external view returns (address coinbase) {
        return block.coinbase;
    }

    function getCurrentBlockDifficulty() external view returns (uint256 difficulty) {
        return block.prevrandao;
    }

    function getBasefee() external view returns (uint256 basefee) {
        return block.basefee;
    }

    function getChainId() external view returns (uint256 chainid) {
        return block.chainid;
    }

    function getEthBalance(address account) external view returns (uint256 balance) {
        return account.balance;
    }
}
