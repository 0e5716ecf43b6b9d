// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What registration and promotion cost, and where it goes
interface IFeeManager {
    event RegistrationFeeUpdated(uint256 oldFee, uint256 newFee);
    event PromotionFeeUpdated(
        address indexed vault, uint256 indexed fromTrackId, uint256 indexed toTrackId, uint256 fee
    );
    event TreasuryUpdated(address indexed previous, address indexed current);
    event RegistrationFeeRelayerUpdated(address indexed previous, address indexed current);
    event AgentRegistryUpdated(address indexed previous, address indexed current);
    event RegistrationFeePaid(uint256 indexed agentId, address indexed payer, uint256 amount);
    /// @notice The fee came in outside of this contract (HTTP 402) and the relayer vouches for it
    event RegistrationFeePrepaid(uint256 indexed agentId, uint256 amount);
    event PromotionFeePaid(
        uint256 indexed agentId,
        address indexed payer,
        address indexed vault,
        uint256 fromTrackId,
        uint256 toTrackId,
        uint256 amount
    );

    error ZeroAddress();
    error OnlyAgentRegistry(address caller);

    /// @param fee In base units of the fee asset; 0 = registration is free and leaves no event here
    function setRegistrationFee(uint256 fee) external;
    function setPromotionFee(address vault, uint256 fromTrackId, uint256 toTrackId, uint256 fee) external;
    function setTreasury(address treasury) external;

    /// @param relayer Whose registrations are prepaid; the zero address = nobody's
    function setRegistrationFeeRelayer(address relayer) external;
    function setAgentRegistry(address registry) external;

    /// @notice Moves the registration fee from `payer` to the treasury; only the agent registry
    function payRegistrationFee(address payer, uint256 agentId) external;

    /// @notice Records a registration fee that was paid over HTTP 402; only the agent registry
    function payRegistrationFeePrepaid(uint256 agentId) external;

    /// @notice Moves the promotion fee from `payer` to the treasury; only the agent registry
    function payPromotionFee(address payer, uint256 agentId, address vault, uint256 fromTrackId, uint256 toTrackId)
        external;

    function feeAsset() external view returns (address);
    function getRegistrationFee() external view returns (uint256);
    function getPromotionFee(address vault, uint256 fromTrackId, uint256 toTrackId) external view returns (uint256);
    function treasury() external view returns (address);
    function registrationFeeRelayer() external view returns (address);
    function agentRegistry() external view returns (address);
}
