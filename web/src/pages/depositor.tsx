import { PageTitle } from '../parts/panel.tsx'

export const DepositorPage = () => <PageTitle title="Depositor" />
