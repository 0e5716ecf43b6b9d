/** Whether a text is an agent id as the service writes it. */
export const isAgentId = (text: string): boolean => /^[1-9]\d{0,15}$/.test(text)
